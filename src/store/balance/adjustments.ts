/**
 * Adjustments: an operator adds to a balance or takes from it, and gives a reason, which is stored. An adjustment is
 * never a top-up: no payment backs it. A negative one is taken from the unspent ends of lots, the newest last, and
 * never takes a balance below zero.
 */
import type { Micros } from '../../domain/money.ts';
import { getCounters, lockConsumer, type ConsumerRef } from './consumers.ts';
import type { Database, Transaction } from '../database.ts';
import {
  findAdjustment,
  lockCommandKey,
  recordAdjustment,
  type CommandRequest,
} from './adjustment-keys.ts';
import {
  findRepeated,
  KEY_REUSED,
  lockActionKey,
  recordAction,
  type KeyReused,
  type OperatorRequest,
} from '../operators/operator-actions.ts';
import { repayDebts } from './debts.ts';
import { addLot, cutLots, hasRoomFor } from './lots.ts';

export interface Adjustment {
  /** Signed, never 0. */
  readonly amountMicros: Micros;
  readonly reason: string;
}

export type AdjustResult =
  | KeyReused
  /** Less than the amount added when some of it repaid a debt. */
  | {
      readonly kind: 'adjusted';
      /** It was made by an earlier request. */
      readonly isReplay: boolean;
      readonly balanceMicros: Micros;
      readonly debtMicros: Micros;
    }
  | { readonly kind: 'insufficient_balance'; readonly balanceMicros: Micros }
  /** With all that was ever credited it would be more than can be counted. */
  | { readonly kind: 'too_much_credited' };

export async function adjustBalance(
  database: Database,
  consumer: ConsumerRef,
  { amountMicros, reason }: Adjustment,
  by?: OperatorRequest | CommandRequest,
): Promise<AdjustResult> {
  const record = by && recordOf(consumer, { amountMicros, reason }, by);
  return database.transaction(async (tx) => {
    await record?.lock(tx);
    await lockConsumer(tx, consumer);
    const { balanceMicros, debtMicros } = await getCounters(tx, consumer);
    const known = await record?.find(tx);
    if (known === 'same') {
      return { kind: 'adjusted', isReplay: true, balanceMicros, debtMicros };
    }
    if (known) return KEY_REUSED;
    if (balanceMicros + amountMicros < 0) return { kind: 'insufficient_balance', balanceMicros };
    if (!(await hasRoomFor(tx, consumer, amountMicros))) return { kind: 'too_much_credited' };
    const movement = { kind: 'adjustment', amountMicros: Math.abs(amountMicros), reason } as const;
    await (amountMicros > 0 ? addLot : cutLots)(tx, consumer, movement);
    await repayDebts(tx, [consumer]);
    await record?.write(tx);
    const after = await getCounters(tx, consumer);
    return {
      kind: 'adjusted',
      isReplay: false,
      balanceMicros: after.balanceMicros,
      debtMicros: after.debtMicros,
    };
  });
}

/** Lets a repeated request find that it was made before, by an operator or by a command. */
function recordOf(
  consumer: ConsumerRef,
  adjustment: Adjustment,
  by: OperatorRequest | CommandRequest,
) {
  if ('operatorAccountId' in by) {
    const action = { ...by, kind: 'adjustment' as const, ...adjustment };
    return {
      lock: (tx: Transaction) => lockActionKey(tx, action),
      find: (tx: Transaction) => findRepeated(tx, action),
      write: (tx: Transaction) => recordAction(tx, action),
    };
  }
  const { ledger, consumerId } = consumer;
  const asked = { ...by, ledger, consumerId, ...adjustment };
  return {
    lock: (tx: Transaction) => lockCommandKey(tx, asked),
    find: (tx: Transaction) => findAdjustment(tx, asked),
    write: (tx: Transaction) => recordAdjustment(tx, asked),
  };
}
