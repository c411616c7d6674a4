/** More charges than a process lets wait: those past the bound are refused at once, and nothing else suffers. */
import assert from 'node:assert/strict';
import { ChargeReply, ChargeBatchReply } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { assertError, bodyOf, call, type Answer } from '../support/http.ts';
import { until } from '../support/stack.ts';
import { holdConsumer } from '../support/row-locks.ts';

/** Two lanes of 5,000 (src/processes/api.ts), of which a consumer has one; in flight are up to 200 more. */
const FITS = 5_000 + 200;
const BATCHES = 6;
const BATCH = 1_000;

const laneOf = ({ consumerId }: TestAccount) => Number.parseInt(consumerId.slice(-1), 16) % 2;

describe('more charges than can wait', () => {
  let api: TestApi;
  let account: TestAccount;
  let neighbour: TestAccount;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(10);
    neighbour = await accountInOtherLane();
    for (const each of [account, neighbour]) bodyOf(await charge(each), 201, ChargeReply);
  });
  after(() => api?.stop());

  const charge = ({ developerKey, consumerKey }: TestAccount): Promise<Answer> =>
    call(api, 'POST', '/v1/charges', {
      key: developerKey,
      body: { apiKey: consumerKey, tool: 'search', amount: 0.001 },
    });

  async function accountInOtherLane(): Promise<TestAccount> {
    for (;;) {
      const other = await api.createAccount(10);
      if (laneOf(other) !== laneOf(account)) return other;
    }
  }

  /** Waits for nothing but the consumer, which is held. */
  async function chargeMany(): Promise<number[]> {
    const member = { apiKey: account.consumerKey, tool: 'search', amount: 0.001 };
    const answer = await call(api, 'POST', '/v1/charges/batch', {
      key: account.developerKey,
      body: { charges: Array.from({ length: BATCH }, () => member) },
    });
    return bodyOf(answer, 200, ChargeBatchReply).results.map(({ status }) => status);
  }

  it('refuses what is past the bound at once, and charges others meanwhile', async () => {
    const held = await holdConsumer(api.databaseUrl, account.consumerId);
    const many = Array.from({ length: BATCHES }, () => chargeMany());
    await held.waited(1);
    // While the consumer is held, the only answer that can come is a refusal.
    const singles: Promise<Answer>[] = [];
    let refused: Answer | undefined;
    await until(() => {
      const single = charge(account);
      singles.push(single);
      void single.then((answer) => (refused ??= answer));
      return refused;
    });
    assert.ok(refused);
    assertError(refused, 503, 'service_unavailable');
    assert.equal(refused.headers.get('retry-after'), '1');
    bodyOf(await charge(neighbour), 201, ChargeReply);
    assert.equal((await call(api, 'GET', '/readyz')).status, 200);
    await held.release();

    const statuses = [
      ...(await Promise.all(many)).flat(),
      ...(await Promise.all(singles)).map(({ status }) => status),
    ];
    assert.deepEqual(new Set(statuses), new Set([201, 503]));
    const made = statuses.filter((status) => status === 201).length;
    assert.ok(made <= FITS, `${made} were made, more than can wait`);
    assert.equal(Number((await api.books()).charges), made + 3);
  });

  it('takes charges again when there is room', async () => {
    bodyOf(await charge(account), 201, ChargeReply);
  });

  it('leaves the books whole', () => proveBooks(api.env, { processor: false }));
});
