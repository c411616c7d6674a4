/** Every corruption of rows that tests plant, by the part of doctor that finds it. */
import type { LedgerPart } from '../../../../src/store/doctor/ledger-checks.ts';
import type { Plant } from '../planted-books.ts';
import { APPROVAL_PLANTS } from './approvals.ts';
import { BALANCE_PLANTS } from './balances.ts';
import { BUDGET_PLANTS } from './budgets.ts';
import { CHARGE_PLANTS } from './charges.ts';
import { DELIVERY_PLANTS } from './delivery.ts';
import { HOLD_PLANTS } from './holds.ts';
import { TOP_UP_PLANTS } from './top-ups.ts';

export const PLANTS: readonly (readonly [part: LedgerPart, plants: readonly Plant[]])[] = [
  ['balances', BALANCE_PLANTS],
  ['top-ups', TOP_UP_PLANTS],
  ['delivery', DELIVERY_PLANTS],
  ['approvals', APPROVAL_PLANTS],
  ['holds', HOLD_PLANTS],
  ['budgets', BUDGET_PLANTS],
  ['charges', CHARGE_PLANTS],
];
