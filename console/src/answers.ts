/** What the API answers, as the schemas of its routes say. */
import type { Static } from 'typebox';
import type { ChargesAnswer, UsageAnswer, UsageByDayAnswer } from '../../src/schemas/charges.ts';
import type { BalanceAnswer, TopUpRecord, TopUpsAnswer } from '../../src/schemas/consumers.ts';
import type {
  DeveloperAnswer,
  DeveloperTopUpsAnswer,
  EarningsAnswer,
  ToolsAnswer,
} from '../../src/schemas/developers.ts';
import type { KeysAnswer, ListedKey, NewKeyAnswer, SessionAnswer } from '../../src/schemas/keys.ts';
import type { ReceiptKeysAnswer, VerifyAnswer } from '../../src/schemas/receipts.ts';
import type {
  ConsumerStatementAnswer,
  DeveloperStatementAnswer,
} from '../../src/schemas/statements.ts';

export type Balance = Static<typeof BalanceAnswer>;
export type Usage = Static<typeof UsageAnswer>;
export type UsageByDay = Static<typeof UsageByDayAnswer>;
export type Charges = Static<typeof ChargesAnswer>;
export type TopUp = Static<typeof TopUpRecord>;
export type TopUps = Static<typeof TopUpsAnswer>;
export type Earnings = Static<typeof EarningsAnswer>;
export type Tools = Static<typeof ToolsAnswer>;
export type Tool = Tools['tools'][number];
export type DeveloperTopUps = Static<typeof DeveloperTopUpsAnswer>;
export type Developer = Static<typeof DeveloperAnswer>;
export type Keys = Static<typeof KeysAnswer>;
export type Key = Static<typeof ListedKey>;
export type NewKey = Static<typeof NewKeyAnswer>;
export type Session = Static<typeof SessionAnswer>;
export type ReceiptKeys = Static<typeof ReceiptKeysAnswer>;
export type Verified = Static<typeof VerifyAnswer>;
export type ConsumerStatement = Static<typeof ConsumerStatementAnswer>;
export type DeveloperStatement = Static<typeof DeveloperStatementAnswer>;
