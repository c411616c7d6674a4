/**
 * The whole service on a database whose defaults are unusual: charges, holds, leases, top-ups, the search for agents,
 * roll-ups, migrations and doctor.
 */
import assert from 'node:assert/strict';
import { rollUp } from '../../src/store/earnings/rollups.ts';
import { migrate } from '../../src/store/migrations.ts';
import { withClient } from '../../src/store/with-client.ts';
import { createTestAccount, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { capture, place } from '../support/hold-requests.ts';
import { call, charge } from '../support/http.ts';
import { makeLeasable, settle, takeLease } from '../support/lease-requests.ts';
import { signIn } from '../support/sessions.ts';
import {
  asSuperuser,
  createEmptyDatabase,
  startApi,
  type Server,
  type TestDatabase,
} from '../support/stack.ts';
import { openTopUpHarness, type TopUpHarness } from '../support/top-up-harness.ts';

/** As an operator, or the provider of a database, may set them for all that connect. */
const DEFAULTS: Readonly<Record<string, string>> = {
  array_nulls: 'off',
  bytea_output: 'escape',
  client_encoding: 'LATIN1',
  datestyle: 'German',
  default_transaction_isolation: 'serializable',
  exit_on_error: 'on',
  extra_float_digits: '-15',
  idle_in_transaction_session_timeout: '1',
  idle_session_timeout: '1',
  intervalstyle: 'sql_standard',
  lc_monetary: 'C.UTF-8',
  lc_numeric: 'C.UTF-8',
  lc_time: 'C.UTF-8',
  lock_timeout: '1',
  'pg_trgm.similarity_threshold': '1',
  plan_cache_mode: 'force_generic_plan',
  quote_all_identifiers: 'on',
  row_security: 'off',
  search_path: 'pg_temp',
  standard_conforming_strings: 'off',
  statement_timeout: '1',
  timezone: 'Asia/Kolkata',
  transaction_timeout: '1',
  transform_null_equals: 'on',
};

describe('a database whose defaults are unusual', () => {
  let empty: TestDatabase;
  let harness: TopUpHarness;
  let api: Server;
  let account: TestAccount;

  before(async () => {
    empty = await createEmptyDatabase();
    const name = new URL(empty.url).pathname.slice(1);
    await withClient(asSuperuser(empty.url), {}, async (client) => {
      for (const [setting, value] of Object.entries(DEFAULTS)) {
        await client.query(`alter database ${name} set ${setting} = '${value}'`);
      }
    });
    await migrate(empty.url);
    harness = await openTopUpHarness({ ALLOW_PRIVATE_ENDPOINTS: 'true' }, () => false, empty);
    api = await startApi({ env: { ...harness.env, PORT: undefined } });
    await harness.startWorker();
    account = await createTestAccount(empty.url, 10);
  });
  after(async () => {
    await api?.stop();
    // Its database is dropped at the end.
    await harness?.close();
  });

  it('takes charges, each once, and keeps their texts and times', async () => {
    const { developerKey: key } = account;
    const metadata = { text: String.raw`a \ 'b' {NULL} "null" ü€😀` };
    const once = { 'idempotency-key': 'once' };
    const ids = new Set<string>();
    for (const headers of [once, once, {}, {}]) {
      const made = await charge(api, account, { metadata }, headers);
      assert.equal(made.status, 201);
      ids.add((made.body as { id: string }).id);
    }
    assert.equal(ids.size, 3);
    const listed = await call(api, 'GET', '/v1/charges', { key });
    const { charges } = listed.body as { charges: { createdAt: string; metadata: object }[] };
    for (const each of charges) {
      assert.deepEqual(each.metadata, metadata);
      assert.ok(Math.abs(Date.parse(each.createdAt) - Date.now()) < 60_000, each.createdAt);
    }
    const [id] = ids;
    const refund = await call(api, 'POST', `/v1/charges/${id}/refund`, { key, body: {} });
    assert.equal(refund.status, 201);
  });

  it('captures holds and settles leases', async () => {
    await capture(api, account, (await place(api, account)).id);
    const { spendKey } = await makeLeasable(api, account.consumerKey);
    const lease = await takeLease(api, account, spendKey);
    await settle(api, account, lease.id, [{ sequence: 1 }, { sequence: 2, metadata: { a: null } }]);
  });

  it('credits a top-up', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    assert.equal((await harness.books(consumer)).credited, 25_000_000);
  });

  it('adds up what developers earn', async () => {
    await rollUp(harness.database);
    const { body } = await call(api, 'GET', '/v1/earnings', { key: account.developerKey });
    // Three charges less a refund, a hold, and two charges of a lease.
    assert.equal((body as { totalEarnings: number }).totalEarnings, 1.08);
  });

  it('finds an agent by a misspelled word', async () => {
    const headers = { 'x-service-key': account.legacyKey };
    const passport = {
      id: 'otter',
      name: 'Otter',
      protocol: 'http',
      endpoint: 'http://127.0.0.1:9/',
    };
    const registered = await call(api, 'POST', '/register', { headers, body: passport });
    assert.equal(registered.status, 201);
    const found = await call(api, 'POST', '/resolve', {
      headers,
      body: { query: 'oter', topK: 3 },
    });
    assert.equal((found.body as { results: object[] }).results.length, 1);
  });

  it('signs people in to the console', async () => {
    await signIn(api, empty.url, account.email);
  });

  it('has books and a schema in which doctor finds nothing', async () => {
    await proveBooks(harness.env);
  });
});
