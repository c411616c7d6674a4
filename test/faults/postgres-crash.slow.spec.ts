/** Postgres crashes under the API: answered charges are kept, the others are resolved by the same key. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { uuidOf, wireId } from '../../src/domain/ids.ts';
import { ChargeReply } from '../../src/schemas/charges.ts';
import { createTestAccounts, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { assertError, bodyOf, call, type Answer } from '../support/http.ts';
import { startApi, until, type Environment, type Server } from '../support/stack.ts';
import { holdConsumer, waitedTooLong } from '../support/row-locks.ts';
import { startOwnPostgres } from '../support/own-servers.ts';
import { PersistentCharges } from './persistent-charges.ts';

const CLIENTS = 40;

describe('a crash of Postgres', () => {
  let postgres: Awaited<ReturnType<typeof startOwnPostgres>>;
  let api: Server;
  let env: Environment;
  let account: TestAccount;
  let poor: TestAccount;

  before(async () => {
    postgres = await startOwnPostgres();
    env = {
      DATABASE_URL: postgres.url,
      TEMPORAL_ADDRESS: '127.0.0.1:9',
      STRIPE_API_BASE: 'http://127.0.0.1:9',
      STRIPE_SECRET_KEY: 'sk_test_none',
      STRIPE_WEBHOOK_SECRET: 'whsec_none',
      MASTER_SECRET: 'of the tests of crashes of Postgres',
    };
    api = await startApi({ env });
  });
  beforeEach(async () => {
    [account, poor] = (await createTestAccounts(postgres.url, 2, 100)) as [
      TestAccount,
      TestAccount,
    ];
  });
  after(async () => {
    await api?.stop();
    await postgres?.remove();
  });

  for (const [how, signal] of [
    ['stopped at once', 'SIGQUIT'],
    ['killed', 'SIGKILL'],
  ] as const) {
    it(`keeps every answered charge, and makes none twice, when it is ${how}`, async () => {
      const charges = new PersistentCharges([api], account.developerKey);
      const clients = Array.from({ length: CLIENTS }, (_, index) =>
        // The poor one's balance runs out on the way: refusals go through the crash as well.
        charges.makeUntilStopped(index % 4 === 0 ? poor : account, index % 4 === 0 ? 0.4 : 0.001),
      );
      await until(() => charges.made.size > 500 && charges.count('402') > 0);
      await postgres.crash(signal);
      await until(() => charges.count('503') > CLIENTS);
      await assertUnavailable();
      const lastBefore = charges.made.size;
      await postgres.restart();
      // The API reconnects by itself.
      await until(() => charges.made.size > lastBefore + 500);
      charges.stop();
      await Promise.all(clients);
      assert.deepEqual(charges.violations, []);
      assert.deepEqual(await storedCharges(), charges.made);
      await proveBooks(env, { processor: false });
    });
  }

  it('leaves the outcome of a charge in flight unknown, and the key resolves it', async () => {
    let unknown = await crashInFlight();
    while (waitedTooLong(unknown)) {
      await postgres.restart();
      await until(async () => (await call(api, 'GET', '/readyz')).status === 200);
      unknown = await crashInFlight();
    }
    assertError(unknown, 500, 'outcome_unknown');
    assertError(await charge(), 503, 'service_unavailable');
    await postgres.restart();
    const answer = await until(async () => {
      const again = await charge();
      return again.status === 503 ? undefined : again;
    });
    assert.equal(bodyOf(answer, 201, ChargeReply).balance, 99);
    assert.equal(answer.headers.get('idempotency-replayed'), null);
    await proveBooks(env, { processor: false });
  });

  const charge = () =>
    call(api, 'POST', '/v1/charges', {
      key: account.developerKey,
      headers: { 'idempotency-key': 'job' },
      body: { apiKey: account.consumerKey, tool: 'search', amount: 1 },
    });

  async function crashInFlight(): Promise<Answer> {
    const held = await holdConsumer(postgres.url, account.consumerId);
    const inFlight = charge();
    await held.waited(1, inFlight);
    await postgres.crash();
    const answer = await inFlight;
    await held.release();
    return answer;
  }

  async function assertUnavailable(): Promise<void> {
    const balance = await call(api, 'GET', '/v1/balance', { key: account.consumerKey });
    assertError(balance, 503, 'service_unavailable');
    const ready = await call(api, 'GET', '/readyz');
    assert.equal(ready.status, 503);
    for (const answer of [balance, ready]) assert.equal(answer.headers.get('retry-after'), '1');
    assert.equal((await call(api, 'GET', '/healthz')).status, 200);
  }

  /** Ids of all charges that this test made. */
  async function storedCharges(): Promise<Set<string>> {
    const client = new Client({ connectionString: postgres.url });
    await client.connect();
    const { rows } = await client.query<{ id: string }>(
      'select id from farebox.charges where consumer_id = any($1)',
      [[account, poor].map(({ consumerId }) => uuidOf('consumer', consumerId))],
    );
    await client.end();
    return new Set(rows.map(({ id }) => wireId('charge', id)));
  }
});
