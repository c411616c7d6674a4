/**
 * Holds beside charges, refunds and top-ups, against a simple model: in any order, by several consumers and
 * developers, the figures agree everywhere.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { Static, TSchema } from 'typebox';
import { asMicros } from '../../../src/domain/money.ts';
import { wireId } from '../../../src/domain/ids.ts';
import { BalanceReply, UsageReply } from '../../../src/schemas/balance.ts';
import { ChargeReply, RefundReply } from '../../../src/schemas/charges.ts';
import { EarningsReply } from '../../../src/schemas/earnings.ts';
import {
  CaptureReply,
  HoldReply,
  HoldsReply,
  PlacedHoldReply,
} from '../../../src/schemas/holds.ts';
import {
  ConsumerStatementReply,
  DeveloperStatementReply,
} from '../../../src/schemas/statements.ts';
import { DeveloperTopUpsReply } from '../../../src/schemas/top-ups.ts';
import { findAccount } from '../../../src/store/accounts/accounts.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { rollUp } from '../../../src/store/earnings/rollups.ts';
import { expireHolds } from '../../../src/store/holds/expire-holds.ts';
import { creditManually } from '../../../src/store/top-ups/credit-top-up.ts';
import { createTestAccounts, type TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { proveBooks } from '../../support/books.ts';
import { bodyOf, call, charge } from '../../support/http.ts';
import { ChargeBooks } from '../charge-books.ts';
import { askCapture, askHold, askRelease } from '../../support/hold-requests.ts';

/** Few, so that they meet. */
const ACCOUNTS = 2;
const OVER = ['reject', 'cap', 'overflow'] as const;

interface ModelHold {
  readonly id: string;
  readonly consumer: TestAccount;
  readonly developer: TestAccount;
  left: number;
  captured: number;
  status: 'open' | 'captured' | 'released' | 'expired';
}

const account = fc.nat(ACCOUNTS - 1);
const anyStep = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('topUp'), consumer: account, micros: fc.nat(60) }),
  },
  ...(['charge', 'hold'] as const).map((what) => ({
    weight: what === 'hold' ? 5 : 2,
    arbitrary: fc.record({
      do: fc.constant(what),
      consumer: account,
      developer: account,
      micros: fc.nat(30),
    }),
  })),
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('capture'),
      hold: fc.nat(),
      micros: fc.option(fc.nat(40)),
      final: fc.boolean(),
      over: fc.constantFrom(...OVER),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('release', 'expire'), hold: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('refund'), charge: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rollUp') }) },
);
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never;

describe('holds beside charges and refunds', function () {
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
        const model = new Model(accounts);
        for (const step of steps) await take(step, model);
        for (const each of accounts) assert.deepEqual(await shownTo(each), model.figuresOf(each));
      }),
      { numRuns: 20 },
    );
    await proveBooks(api.env, { processor: false });
  });

  async function take(step: Step, model: Model): Promise<void> {
    const { books } = model;
    switch (step.do) {
      case 'topUp': {
        const { email, consumerId } = model.account(step.consumer);
        const found = (await findAccount(database, { email })) ?? assert.fail();
        const micros = step.micros + 1;
        const credit = { ...found, accountId: found.id, amountMicros: asMicros(micros) };
        const [id] = await database.transaction((tx) => creditManually(tx, [credit]));
        return books.topUp(consumerId, wireId('topUp', id ?? ''), micros);
      }
      case 'charge': {
        const [consumer, developer] = [model.account(step.consumer), model.account(step.developer)];
        const micros = step.micros + 1;
        const both = { ...consumer, developerKey: developer.developerKey };
        const answer = await charge(api, both, { amount: micros / 1e6 });
        if (micros > model.available(consumer)) return assert.equal(answer.status, 402);
        const { id, balance } = bodyOf(answer, 201, ChargeReply);
        model.charge(id, consumer, developer, micros);
        return assert.equal(balance, model.available(consumer) / 1e6);
      }
      case 'hold': {
        const [consumer, developer] = [model.account(step.consumer), model.account(step.developer)];
        const micros = step.micros + 1;
        const both = { ...consumer, developerKey: developer.developerKey };
        const answer = await askHold(api, both, { amount: micros / 1e6 });
        if (micros > model.available(consumer)) return assert.equal(answer.status, 402);
        const { id, balance } = bodyOf(answer, 201, PlacedHoldReply);
        model.holds.push({ id, consumer, developer, left: micros, captured: 0, status: 'open' });
        return assert.equal(balance, model.available(consumer) / 1e6);
      }
      case 'capture': {
        const hold = model.holds[step.hold % model.holds.length];
        return hold && capture(hold, step, model);
      }
      case 'release': {
        const hold = model.holds[step.hold % model.holds.length];
        if (!hold) return;
        const answer = await askRelease(api, hold.developer, hold.id);
        if (hold.status !== 'open' && hold.status !== 'released') {
          return assert.equal(answer.status, 409);
        }
        Object.assign(hold, { left: 0, status: 'released' });
        return assert.equal(bodyOf(answer, 200, HoldReply).captured, hold.captured / 1e6);
      }
      case 'expire': {
        const hold = model.holds[step.hold % model.holds.length];
        if (hold?.status !== 'open') return;
        await overdue(hold.id);
        await expireHolds(database);
        return void Object.assign(hold, { left: 0, status: 'expired' });
      }
      case 'refund': {
        const made = books.charges[step.charge % books.charges.length];
        if (!made || made.refunded === made.micros) return;
        const { developerKey: key } = model.developerOf(made.developerId);
        const answer = await call(api, 'POST', `/v1/charges/${made.id}/refund`, { key, body: {} });
        bodyOf(answer, 201, RefundReply);
        return books.refund(made, made.micros - made.refunded);
      }
      case 'rollUp':
        return void (await rollUp(database));
    }
  }

  async function capture(
    hold: ModelHold,
    { micros, final, over }: { micros: number | null; final: boolean; over: (typeof OVER)[number] },
    model: Model,
  ): Promise<void> {
    const asked = micros === null ? undefined : micros + 1;
    const amount = asked === undefined ? {} : { amount: asked / 1e6 };
    const answer = await askCapture(api, hold.developer, hold.id, { ...amount, final, over });
    if (hold.status !== 'open') return assert.equal(answer.status, 409);
    const wanted = asked ?? hold.left;
    if (wanted > hold.left && over === 'reject') return assert.equal(answer.status, 402);
    const taken = over === 'cap' ? Math.min(wanted, hold.left) : wanted;
    if (taken - hold.left > model.available(hold.consumer)) return assert.equal(answer.status, 402);
    const made = bodyOf(answer, 201, CaptureReply);
    hold.left = final ? 0 : Math.max(hold.left - taken, 0);
    hold.captured += taken;
    if (hold.left === 0) hold.status = 'captured';
    model.charge(made.id, hold.consumer, hold.developer, taken);
    assert.deepEqual(
      [made.amount, made.balance, made.hold.remaining],
      [taken / 1e6, model.available(hold.consumer) / 1e6, hold.left / 1e6],
    );
  }

  async function overdue(id: string): Promise<void> {
    await api.sql.query(
      `with late as (update farebox.holds set expires_at = now() where id = $1 returning id)
       update farebox.hold_expiries set due_at = now()
       where holds @> array(select id from late)`,
      [id.slice('hld_'.length)],
    );
  }

  async function read<T extends TSchema>(path: string, key: string, schema: T): Promise<Static<T>> {
    return bodyOf(await call(api, 'GET', path, { key }), 200, schema);
  }

  async function shownTo({ consumerKey, developerKey }: TestAccount): Promise<object> {
    const { balance } = await read('/v1/balance', consumerKey, BalanceReply);
    const { charges, total } = await read('/v1/usage?limit=100', consumerKey, UsageReply);
    const { holds } = await read('/v1/holds?limit=100', consumerKey, HoldsReply);
    const { totalEarnings } = await read('/v1/earnings', developerKey, EarningsReply);
    const { topUps } = await read('/v1/top-ups?limit=100', developerKey, DeveloperTopUpsReply);
    const month = `/v1/statements/${new Date().toISOString().slice(0, 7)}`;
    return {
      balance,
      usage: total,
      charges: new Map(charges.map(({ id, amount, refunded }) => [id, [amount, refunded]])),
      holds: new Map(holds.map((hold) => [hold.id, [hold.captured, hold.remaining, hold.status]])),
      earnings: totalEarnings,
      topUps: new Map(topUps.map((topUp) => [topUp.id, [topUp.charged, topUp.charges]])),
      closing: [
        (await read(month, consumerKey, ConsumerStatementReply)).closingBalance,
        (await read(month, developerKey, DeveloperStatementReply)).closingEarnings,
      ],
    };
  }
});

class Model {
  readonly books = new ChargeBooks();
  readonly holds: ModelHold[] = [];
  readonly #accounts: readonly TestAccount[];

  constructor(accounts: readonly TestAccount[]) {
    this.#accounts = accounts;
  }

  account(index: number): TestAccount {
    return this.#accounts[index] ?? assert.fail();
  }

  developerOf(developerId: string): TestAccount {
    return this.#accounts.find((each) => each.developerId === developerId) ?? assert.fail();
  }

  available({ consumerId }: TestAccount): number {
    const reserved = this.holds
      .filter(({ consumer }) => consumer.consumerId === consumerId)
      .reduce((sum, { left }) => sum + left, 0);
    return this.books.balance(consumerId) - reserved;
  }

  charge(id: string, { consumerId }: TestAccount, { developerId }: TestAccount, micros: number) {
    this.books.charge({ id, consumerId, developerId, tool: 'search', micros });
  }

  figuresOf(each: TestAccount): object {
    const { consumerId, developerId } = each;
    const { books } = this;
    const earnings = [...books.earnings(developerId)].reduce((sum, [, e]) => sum + e.micros, 0);
    return {
      balance: this.available(each) / 1e6,
      usage: books.usage(consumerId) / 1e6,
      charges: new Map(
        books
          .chargesOf(consumerId)
          .map((made) => [made.id, [made.micros / 1e6, made.refunded / 1e6]]),
      ),
      holds: new Map(
        this.holds
          .filter(({ consumer }) => consumer.consumerId === consumerId)
          .map((hold) => [hold.id, [hold.captured / 1e6, hold.left / 1e6, hold.status]]),
      ),
      earnings: earnings / 1e6,
      topUps: new Map(
        [...books.topUps(developerId)].map(([id, { charged, charges }]) => [
          id,
          [charged / 1e6, charges],
        ]),
      ),
      // A statement counts credited and spent money: reserved money has not left the account.
      closing: [books.balance(consumerId) / 1e6, earnings / 1e6],
    };
  }
}
