/** Refunds beside everything else that moves the same money: charges, top-ups and roll-ups, on two servers. */
import assert from 'node:assert/strict';
import { asMicros } from '../../../src/domain/money.ts';
import { ChargeReply, RefundReply } from '../../../src/schemas/charges.ts';
import { UsageReply } from '../../../src/schemas/balance.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { EarningsReply } from '../../../src/schemas/earnings.ts';
import { ToolsReply } from '../../../src/schemas/tools.ts';
import { findAccount } from '../../../src/store/accounts/accounts.ts';
import { creditManually } from '../../../src/store/top-ups/credit-top-up.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { rollUp } from '../../../src/store/earnings/rollups.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { proveBooks } from '../../support/books.ts';
import { bodyOf, call, charge, type Answer } from '../../support/http.ts';
import { until } from '../../support/stack.ts';

const FIRST = 60;
const asCharge = (answer: Answer) => bodyOf(answer, 201, ChargeReply);
const range = (count: number) => Array.from({ length: count }, (_, n) => n);
/** In micros, so that the sum is exact. */
const sum = (items: readonly { readonly amount: number }[]) =>
  items.reduce((total, { amount }) => total + Math.round(amount * 1e6), 0);

describe('refunds of charges beside other traffic', () => {
  let api: TestApi;
  let database: Database;
  let consumer: TestAccount;
  let developer: TestAccount;

  before(async () => {
    api = await startTestApi({ servers: 2 });
    // Roll-ups wait for one another, and on a busy machine for long.
    database = await createDatabase(api.databaseUrl, {
      maxPoolSize: 4,
      statementTimeoutMs: 60_000,
      lockTimeoutMs: 60_000,
      onError: () => {},
    });
    [consumer, developer] = [await api.createAccount(10), await api.createAccount(0)];
  });
  after(async () => {
    await database.end();
    await api.stop();
  });

  it('add up to the micro-dollar, for every consumer and every developer', async () => {
    const first = (await Promise.all(range(FIRST).map(post))).map(asCharge);
    const over = new AbortController();
    const rollUps = range(2).map(async () => {
      while (!over.signal.aborted) await rollUp(database);
    });
    const [refunds, charges] = await Promise.all([
      Promise.all(range(240).map((n) => giveBack(first[n % FIRST]?.id ?? '', n))),
      Promise.all(range(150).map(post)),
      Promise.all(range(10).map(topUp)),
    ]);
    over.abort();
    await Promise.all(rollUps);

    const back = refunds
      .filter(({ status }) => status === 201)
      .map((answer) => bodyOf(answer, 201, RefundReply));
    assert.ok(back.length > FIRST && back.length < 240, `${back.length} of 240 refunds`);
    const made = [...first, ...charges.filter(({ status }) => status === 201).map(asCharge)];
    const netMicros = sum(made) - sum(back);
    const net = netMicros / 1e6;
    const shown = {
      balance: bodyOf(await read('/v1/balance', consumer.consumerKey), 200, BalanceReply).balance,
      usage: bodyOf(await read('/v1/usage', consumer.consumerKey), 200, UsageReply).total,
      earned: bodyOf(await read('/v1/earnings', developer.developerKey), 200, EarningsReply).byTool,
    };
    assert.deepEqual(shown, {
      balance: (20e6 - netMicros) / 1e6,
      usage: net,
      earned: { search: net },
    });
    const { tools } = bodyOf(await read('/v1/tools', developer.developerKey), 200, ToolsReply);
    assert.deepEqual(
      tools.map(({ totalCharges, totalRevenue }) => [totalCharges, totalRevenue]),
      [[made.length, net]],
    );
    await proveBooks(api.env, { processor: false });
  });

  const serverOf = (n: number) => api.servers[n % 2] ?? api;
  const read = (path: string, key: string) => call(api, 'GET', path, { key });

  async function post(n: number): Promise<Answer> {
    const account = { ...consumer, developerKey: developer.developerKey };
    return charge(serverOf(n), account, { amount: (50_000 + n) / 1e6 });
  }

  /** Sometimes a part, sometimes all that is left; again when too many refunds wait. */
  async function giveBack(id: string, n: number): Promise<Answer> {
    const body = n % 7 === 0 ? {} : { amount: (10_000 + n) / 1e6 };
    const path = `/v1/charges/${id}/refund`;
    return until(async () => {
      const answer = await call(serverOf(n), 'POST', path, { key: developer.developerKey, body });
      return answer.status !== 429 && answer;
    });
  }

  /** $1.00. */
  async function topUp(): Promise<void> {
    const found = (await findAccount(database, consumer)) ?? assert.fail();
    const credit = { ...found, accountId: found.id, amountMicros: asMicros(1_000_000) };
    await database.transaction((tx) => creditManually(tx, [credit]));
  }
});
