/** More charges than a process queues: those beyond the limit are refused, and nothing else suffers. */
import assert from 'node:assert/strict';
import { ChargeBatchReply } from '../../src/schemas/charge-batches.ts';
import { ChargeReply } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApiProcesses, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { assertError, bodyOf, call, type Answer } from '../support/http.ts';
import { holdConsumer } from '../support/row-locks.ts';
import { until } from '../support/stack.ts';

const BATCHES = 6;
const BATCH = 1_000;
const NEIGHBORS_CHARGES = 20;

const laneOf = ({ consumerId }: TestAccount) => Number.parseInt(consumerId.slice(-1), 16) % 2;

describe('more charges than the queue holds', () => {
  let api: TestApi;
  let account: TestAccount;
  let neighbor: TestAccount;

  before(async () => {
    api = await startTestApiProcesses();
    account = await api.createAccount(10);
    neighbor = await accountInSameLane();
    for (const each of [account, neighbor]) bodyOf(await charge(each), 201, ChargeReply);
  });
  after(() => api?.stop());

  const charge = ({ developerKey, consumerKey }: TestAccount): Promise<Answer> =>
    call(api, 'POST', '/v1/charges', {
      key: developerKey,
      body: { apiKey: consumerKey, tool: 'search', amount: 0.001 },
    });

  async function accountInSameLane(): Promise<TestAccount> {
    for (;;) {
      const other = await api.createAccount(10);
      if (laneOf(other) === laneOf(account)) return other;
    }
  }

  /** Waits only for the consumer, which is locked. */
  async function chargeMany(): Promise<number[]> {
    const member = { apiKey: account.consumerKey, tool: 'search', amount: 0.001 };
    const answer = await call(api, 'POST', '/v1/charges/batch', {
      key: account.developerKey,
      body: { charges: Array.from({ length: BATCH }, () => member) },
    });
    if (answer.status === 429) {
      assertError(answer, 429, 'rate_limited');
      assert.equal(answer.headers.get('retry-after'), '1');
      return [];
    }
    return bodyOf(answer, 200, ChargeBatchReply).results.map(({ status }) => status);
  }

  it('refuses a charge that would wait too long, and makes others of its lane meanwhile', async () => {
    const held = await holdConsumer(api.databaseUrl, account.consumerId);
    const many = Array.from({ length: BATCHES }, () => chargeMany());
    await held.waited(1);
    const refusal = charge(account);
    for (let n = 0; n < NEIGHBORS_CHARGES; n += 1) {
      bodyOf(await charge(neighbor), 201, ChargeReply);
    }
    await until(async () => (await call(api, 'GET', '/readyz')).status === 200);
    const refused = await refusal;
    assertError(refused, 503, 'service_unavailable');
    assert.equal(refused.headers.get('retry-after'), '1');
    await held.release();
    const statuses = (await Promise.all(many)).flat();
    const made = statuses.filter((status) => status === 201).length;
    assert.deepEqual(
      statuses.filter((status) => ![201, 503].includes(status)),
      [],
    );
    assert.equal(Number((await api.books()).charges), made + 2 + NEIGHBORS_CHARGES);
  });

  it('accepts charges again when there is room', async () => {
    bodyOf(await charge(account), 201, ChargeReply);
  });

  it('leaves the books correct', () => proveBooks(api.env, { processor: false }));
});
