/**
 * Every shown figure, against a simple model: any charges, top-ups and refunds of charges, by several
 * developers and consumers, with roll-ups in between.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { Static, TSchema } from 'typebox';
import { wireId } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { ChargeReply, RefundReply } from '../../../src/schemas/charges.ts';
import { UsageReply } from '../../../src/schemas/balance.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { DeveloperTopUpsReply } from '../../../src/schemas/top-ups.ts';
import { EarningsReply } from '../../../src/schemas/earnings.ts';
import { ToolsReply } from '../../../src/schemas/tools.ts';
import {
  ConsumerStatementReply,
  DeveloperStatementReply,
} from '../../../src/schemas/statements.ts';
import { findAccount } from '../../../src/store/accounts/accounts.ts';
import { creditManually } from '../../../src/store/top-ups/credit-top-up.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { rebuildRollups, rollUp } from '../../../src/store/earnings/rollups.ts';
import { createTestAccounts, type TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { proveBooks } from '../../support/books.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';
import { ChargeBooks, type ModelCharge } from '../charge-books.ts';

/** Few of each, so that they meet. */
const ACCOUNTS = 3;
const TOOLS = ['search', 'read', '__proto__'] as const;

/** Numbers beyond the limits are brought within them when the step runs. */
type Step =
  | { readonly do: 'topUp'; readonly consumer: number; readonly micros: number }
  | {
      readonly do: 'charge';
      readonly consumer: number;
      readonly developer: number;
      readonly tool: (typeof TOOLS)[number];
      readonly micros: number;
    }
  /** For one of the charges; null: all that is left of it. */
  | { readonly do: 'refund'; readonly charge: number; readonly part: number | null }
  | { readonly do: 'rollUp' | 'rebuild' };

const account = fc.nat(ACCOUNTS - 1);
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('topUp'),
      consumer: account,
      micros: fc.integer({ min: 1, max: 60 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('charge'),
      consumer: account,
      developer: account,
      tool: fc.constantFrom(...TOOLS),
      micros: fc.integer({ min: 1, max: 40 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('refund'),
      charge: fc.nat(),
      part: fc.option(fc.nat()),
    }),
  },
  { weight: 1, arbitrary: fc.constantFrom({ do: 'rollUp' }, { do: 'rebuild' }) },
);

describe('charges and their refunds', () => {
  let api: TestApi;
  let database: Database;

  before(async () => {
    api = await startTestApi();
    database = await createDatabase(api.databaseUrl, { maxPoolSize: 4, onError: () => {} });
  });
  after(async () => {
    await database.end();
    await api.stop();
  });

  it('agree with a simple model in every figure shown', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 8, maxLength: 40 }), async (steps) => {
        const accounts = await createTestAccounts(api.databaseUrl, ACCOUNTS, 0);
        const books = new ChargeBooks();
        for (const step of steps) await take(step, accounts, books);
        for (const account of accounts) {
          assert.deepEqual(await shownTo(account), figuresOf(books, account));
        }
      }),
      { numRuns: 20 },
    );
    await proveBooks(api.env, { processor: false });
  });

  async function take(step: Step, accounts: readonly TestAccount[], books: ChargeBooks) {
    switch (step.do) {
      case 'topUp':
        return topUp(accounts[step.consumer] as TestAccount, step.micros, books);
      case 'charge': {
        const consumer = accounts[step.consumer] as TestAccount;
        const { developerId, developerKey } = accounts[step.developer] as TestAccount;
        const { consumerId } = consumer;
        const { tool, micros } = step;
        const amount = micros / 1e6;
        const answer = await charge(api, { ...consumer, developerKey }, { tool, amount });
        if (micros > books.balance(consumerId)) return assert.equal(answer.status, 402);
        const { id } = bodyOf(answer, 201, ChargeReply);
        return books.charge({ id, consumerId, developerId, tool, micros });
      }
      case 'refund': {
        const made = books.charges[step.charge % books.charges.length];
        return made && refund(made, step.part, accounts, books);
      }
      case 'rollUp':
        return void (await rollUp(database));
      case 'rebuild':
        return rebuildRollups(database);
    }
  }

  async function topUp({ email, consumerId }: TestAccount, micros: number, books: ChargeBooks) {
    const found = (await findAccount(database, { email })) ?? assert.fail();
    const credit = { ...found, accountId: found.id, amountMicros: asMicros(micros) };
    const [id] = await database.transaction((tx) => creditManually(tx, [credit]));
    books.topUp(consumerId, wireId('topUp', id ?? ''), micros);
  }

  async function refund(
    made: ModelCharge,
    part: number | null,
    accounts: readonly TestAccount[],
    books: ChargeBooks,
  ) {
    const left = made.micros - made.refunded;
    // From the smallest amount to one more than is left.
    const asked = part === null ? null : (part % (left + 1)) + 1;
    const { developerKey: key } =
      accounts.find(({ developerId }) => developerId === made.developerId) ?? assert.fail();
    const body = asked === null ? {} : { amount: asked / 1e6 };
    const answer = await call(api, 'POST', `/v1/charges/${made.id}/refund`, { key, body });
    const micros = asked ?? left;
    if (micros > left || left === 0) {
      const facts = { refundable: left / 1e6 };
      const param = asked === null ? undefined : 'amount';
      return assertError(answer, 400, 'refund_exceeds_charge', param, facts);
    }
    books.refund(made, micros);
    const { amount, refunded } = bodyOf(answer, 201, RefundReply);
    assert.deepEqual([amount, refunded], [micros / 1e6, made.refunded / 1e6]);
  }

  async function read<T extends TSchema>(path: string, key: string, schema: T): Promise<Static<T>> {
    return bodyOf(await call(api, 'GET', path, { key }), 200, schema);
  }

  /** Everything that the account reads, as consumer and as developer. */
  async function shownTo({ consumerKey, developerKey }: TestAccount): Promise<Figures> {
    const { balance } = await read('/v1/balance', consumerKey, BalanceReply);
    const { charges, total } = await read('/v1/usage?limit=100', consumerKey, UsageReply);
    const { totalEarnings, byTool } = await read('/v1/earnings', developerKey, EarningsReply);
    const { tools } = await read('/v1/tools', developerKey, ToolsReply);
    const { topUps } = await read('/v1/top-ups?limit=100', developerKey, DeveloperTopUpsReply);
    const month = `/v1/statements/${new Date().toISOString().slice(0, 7)}`;
    const { closingBalance } = await read(month, consumerKey, ConsumerStatementReply);
    const { closingEarnings } = await read(month, developerKey, DeveloperStatementReply);
    return {
      balance,
      usage: total,
      charges: new Map(charges.map(({ id, amount, refunded }) => [id, [amount, refunded]])),
      earnings: totalEarnings,
      byTool: new Map(Object.entries(byTool)),
      tools: new Map(
        tools
          .filter(({ totalCharges }) => totalCharges > 0)
          .map(({ name, totalRevenue, totalCharges }) => [name, [totalRevenue, totalCharges]]),
      ),
      topUps: new Map(topUps.map((topUp) => [topUp.id, [topUp.charged, topUp.charges]])),
      closing: [closingBalance, closingEarnings],
    };
  }
});

interface Figures {
  readonly balance: number;
  readonly usage: number;
  /** The amount and the refunded part. */
  readonly charges: ReadonlyMap<string, readonly number[]>;
  readonly earnings: number;
  readonly byTool: ReadonlyMap<string, number>;
  /** Revenue and number of charges. */
  readonly tools: ReadonlyMap<string, readonly number[]>;
  /** The amount charged to it and the number of charges. */
  readonly topUps: ReadonlyMap<string, readonly number[]>;
  /** From the statements of this month, as consumer and as developer. */
  readonly closing: readonly number[];
}

function figuresOf(books: ChargeBooks, { consumerId, developerId }: TestAccount): Figures {
  const earned = [...books.earnings(developerId)];
  const topUps = [...books.topUps(developerId)];
  const balance = books.balance(consumerId) / 1e6;
  const earnings = earned.reduce((total, [, { micros }]) => total + micros, 0) / 1e6;
  return {
    balance,
    usage: books.usage(consumerId) / 1e6,
    charges: new Map(
      books
        .chargesOf(consumerId)
        .map((made) => [made.id, [made.micros / 1e6, made.refunded / 1e6]]),
    ),
    earnings,
    byTool: new Map(earned.map(([tool, { micros }]) => [tool, micros / 1e6])),
    tools: new Map(earned.map(([tool, { micros, charges }]) => [tool, [micros / 1e6, charges]])),
    topUps: new Map(topUps.map(([id, { charged, charges }]) => [id, [charged / 1e6, charges]])),
    closing: [balance, earnings],
  };
}
