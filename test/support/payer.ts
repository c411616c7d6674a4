/** A consumer with paid top-ups, and the state of its money: for tests of refunds, disputes and debts. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { wireId } from '../../src/domain/ids.ts';
import { asMicros, type Micros } from '../../src/domain/money.ts';
import { createAccounts } from '../../src/store/accounts/accounts.ts';
import { row, sql, type Database } from '../../src/store/database.ts';
import {
  getReversalsVersion,
  recordReversals,
  type ReportedReversal,
} from '../../src/store/top-ups/reversals.ts';
import { admitTopUp } from '../../src/store/top-ups/admit-top-up.ts';
import { getTopUp } from '../../src/store/top-ups/top-ups.ts';
import { newDraft, post } from './charge-drafts.ts';
import { credit } from './evidence.ts';

export type Payer = ReturnType<typeof payerOf>;

export interface Consumer {
  readonly ledger: number;
  readonly consumerId: string;
  readonly accountId: string;
}

export interface Money {
  readonly balance: number;
  readonly held: number;
  readonly debt: number;
}

const ledgerRow = row(Type.Object({ ledger: Type.Integer() }));
const moneyRow = row(
  Type.Object({ balance: Type.Integer(), held: Type.Integer(), debt: Type.Integer() }),
);
const lotRow = row(
  Type.Object({
    topUpId: Type.Union([Type.String(), Type.Null()]),
    from: Type.Integer(),
    to: Type.Integer(),
  }),
);
const kindRow = row(Type.Object({ kind: Type.String(), amount: Type.Integer() }));

export async function newPayer(database: Database): Promise<Payer> {
  const result = await createAccounts(
    database,
    [{ email: `${randomUUID()}@example.com`, balanceMicros: asMicros(0) }],
    { keyPrefix: 'fare', ledgerCount: 16, consentCeilingMicros: undefined },
  );
  assert.ok(result.kind === 'created');
  const { accountId, consumerId } = result.accounts[0]!;
  const ledger = await database.oneFirst(sql.type(ledgerRow)`
    select ledger from farebox.consumers where id = ${consumerId}
  `);
  return payerOf(database, { ledger, consumerId, accountId });
}

/** Amounts are in micros throughout; a top-up is of whole cents. */
export function payerOf(database: Database, consumer: Consumer) {
  const { ledger, consumerId } = consumer;
  return {
    ...consumer,

    /** An unpaid checkout. */
    async open(amountMicros: number): Promise<string> {
      const amount = asMicros(amountMicros);
      const order = { ...consumer, method: 'checkout', amountMicros: amount } as const;
      const admitted = await admitTopUp(database, order);
      assert.ok(admitted.kind === 'admitted');
      return admitted.topUp.id;
    },

    /** A credited top-up's id. */
    async topUp(amountMicros: number, taxMicros = 0): Promise<string> {
      const id = await this.open(amountMicros);
      assert.equal(await credit(database, id, asMicros(taxMicros)), 'credited');
      return id;
    },

    /** Whether the charge succeeded. */
    async charge(amountMicros: number): Promise<boolean> {
      const [outcome] = await post(database, [newDraft(consumer, amountMicros)]);
      return outcome?.kind === 'posted';
    },

    money: (): Promise<Money> =>
      database.one(sql.type(moneyRow)`
        select credited_micros - spent_micros - held_micros as balance, held_micros as held,
          (select coalesce(sum(debt_micros), 0) from farebox.reversals
            where consumer_id = ${consumerId}) as debt
        from farebox.consumers where ledger = ${ledger} and id = ${consumerId}
      `),

    lots: () =>
      database.any(sql.type(lotRow)`
        select top_up_id as "topUpId", from_micros as from, to_micros as to from farebox.lots
        where ledger = ${ledger} and consumer_id = ${consumerId}
        order by from_micros, to_micros, movement_id
      `),

    /** Kind and signed amount of what changed `credited`, the oldest first. */
    async movements(): Promise<string[]> {
      const rows = await database.any(sql.type(kindRow)`
        select kind, amount_micros as amount from farebox.movements
        where ledger = ${ledger} and consumer_id = ${consumerId} order by id
      `);
      return rows.map(({ kind, amount }) => `${kind} ${amount}`);
    },

    statusOf: async (topUpId: string) => (await getTopUp(database, topUpId)).status,

    /** The processor's view of a top-up, read now. */
    async report(topUpId: string, ...reported: ReportedReversal[]): Promise<void> {
      const version = await getReversalsVersion(database, topUpId);
      assert.equal(await recordReversals(database, topUpId, version, reported), true);
    },
  };
}

export function refund(
  processorId: string,
  grossMicros: number,
  status: 'made' | 'failed' = 'made',
  refundId?: string,
): ReportedReversal {
  return { kind: 'refund', processorId, grossMicros: grossMicros as Micros, status, refundId };
}

export function dispute(
  processorId: string,
  grossMicros: number,
  status: 'open' | 'won' | 'lost' = 'open',
): ReportedReversal {
  return { kind: 'dispute', processorId, grossMicros: grossMicros as Micros, status };
}

export function warning(
  processorId: string,
  grossMicros: number,
  status: 'open' | 'won' = 'open',
): ReportedReversal {
  return { kind: 'warning', processorId, grossMicros: grossMicros as Micros, status };
}

/** `re_…`, `dp_…` or `issfr_…` that no other test has. */
export function processorId(kind: 're' | 'dp' | 'issfr'): string {
  return `${kind}_${wireId('charge', randomUUID()).slice(4)}`;
}
