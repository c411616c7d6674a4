/**
 * A ledger is moved by pg_dump and pg_restore, as docs/operations.md says, into an empty database, while
 * Stripe is ahead of the dump. Skipped where there is no pg_dump 18: `npm run fetch:postgres-programs`
 * fetches one.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { wireId } from '../../src/domain/ids.ts';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { findDumpPrograms, type DumpPrograms } from '../support/dump-programs.ts';
import { call, type Answer } from '../support/http.ts';
import { owedWebhooks } from '../support/payments.ts';
import { choosePort } from '../support/ports.ts';
import {
  asSuperuser,
  createEmptyDatabase,
  farebox,
  startApi,
  until,
  type Environment,
  type TestDatabase,
} from '../support/stack.ts';
import { openTopUpHarness, type Consumer, type TopUpHarness } from '../support/top-up-harness.ts';

/** Without the comparison with Stripe, which is ahead of the dump, and without what workers have to do. */
const PARTS = [
  'schema',
  'balances',
  'top-ups',
  'holds',
  'charges',
  'earnings',
  'audit-log',
] as const;

describe('a dump by pg_dump', function () {
  let programs: DumpPrograms;
  let folder: string;
  let harness: TopUpHarness;
  let account: TestAccount;
  let consumer: Consumer;
  let receipt: Answer;
  let contents: Contents;
  let restored: TestDatabase;
  let env: Environment;
  let lostTopUp: string;
  const dumps = { whole: '', schema: '' };

  before(async function () {
    const found = findDumpPrograms();
    if (!found) {
      process.stdout.write('no pg_dump 18: `npm run fetch:postgres-programs` fetches one\n');
      this.skip();
    }
    programs = found;
    folder = await mkdtemp(join(tmpdir(), 'farebox-dump-'));
    harness = await openTopUpHarness();
    account = await createAccount(harness.env, 10);
    consumer = await harness.newConsumer();
    receipt = await chargeOnce(harness.env);
    await payDirectly(5);
    await query(
      asSuperuser(harness.config.databaseUrl),
      'create publication everything for all tables',
    );
    dumps.whole = join(folder, 'whole.dump');
    dumps.schema = join(folder, 'schema.dump');
    contents = await contentsOf(harness.config.databaseUrl);
    await programs.dump(harness.config.databaseUrl, dumps.whole);
    await programs.dump(harness.config.databaseUrl, dumps.schema, '--schema-only');
    lostTopUp = await payDirectly(7);
    restored = await createEmptyDatabase();
    env = { ...harness.env, DATABASE_URL: restored.url };
  });
  after(async () => {
    await harness?.close();
    await restored?.drop();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  it('is restored in full by the owner of an empty database, without superuser rights', async () => {
    await programs.restore(dumps.whole, restored.url, '--no-owner', '--no-publications');
    assert.deepEqual(await contentsOf(restored.url), contents);
    assert.match(await farebox(['migrate'], { env }), /up to date/i);
    await proveBooks(env, { only: PARTS });
  });

  it('is brought up to what Stripe took since', async () => {
    const outcome = JSON.parse(
      await farebox(['reconcile', '--after-restore', '--json'], { env }),
    ) as { readonly credited: readonly string[]; readonly differences: readonly unknown[] };
    assert.deepEqual(outcome.credited, [lostTopUp]);
    assert.deepEqual(outcome.differences, []);
    await proveBooks(env, { only: [...PARTS, 'processor'] });
    const [balance] = await query(
      restored.url,
      `select ((credited_micros - spent_micros) / 1000000)::int as dollars
       from farebox.consumers where id = '${consumer.consumerId}'`,
    );
    assert.equal(balance?.['dollars'], 12);
  });

  it('answers an earlier key with its receipt, and charges a new one', async () => {
    const again = await chargeOnce(env);
    assert.equal(again.status, 201);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    assert.deepEqual(again.body, receipt.body);
    const next = await chargeOnce(env, 'after the restore');
    assert.equal(next.headers.get('idempotency-replayed'), null);
    assert.equal((next.body as { balance: number }).balance, 8);
    await proveBooks(env, { only: [...PARTS, 'processor'] });
  });

  it('is restored whole or not at all', async () => {
    const before = await contentsOf(restored.url);
    await assert.rejects(
      programs.restore(dumps.whole, restored.url, '--no-publications'),
      /already exists/,
    );
    assert.deepEqual(await contentsOf(restored.url), before);
    const other = await createEmptyDatabase();
    try {
      await assert.rejects(programs.restore(dumps.whole, other.url), /must be superuser to create/);
      assert.deepEqual(await contentsOf(other.url), {});
    } finally {
      await other.drop();
    }
  });

  it('of the schema alone is refused by migrate, which says why', async () => {
    const empty = await createEmptyDatabase();
    try {
      await programs.restore(dumps.schema, empty.url, '--no-owner', '--no-publications');
      const its = { env: { ...env, DATABASE_URL: empty.url } };
      await assert.rejects(farebox(['migrate'], its), /no rows that say which release made them/);
    } finally {
      await empty.drop();
    }
  });

  /** By an API that runs for this call. */
  async function chargeOnce(of: Environment, idempotencyKey = 'before the dump'): Promise<Answer> {
    const api = await startApi({ env: { ...of, PORT: String(await choosePort()) } });
    try {
      return await call(api, 'POST', '/v1/charges', {
        key: account.developerKey,
        headers: { 'idempotency-key': idempotencyKey },
        body: { apiKey: account.consumerKey, tool: 'search', amount: 1 },
      });
    } finally {
      await api.stop();
    }
  }

  async function payDirectly(dollars: number): Promise<string> {
    const worker = await harness.startWorker();
    const result = await harness.requestDirect(consumer, dollars);
    assert.ok('topUp' in result, result.kind);
    await harness.statusBecomes(result.topUp, 'completed');
    // A webhook that comes later changes the database, which the test compares with its dump.
    await until(async () => (await owedWebhooks(harness.simulator)) === 0);
    await worker.stop();
    return wireId('topUp', result.topUp.id);
  }
});

/** A hash of each table's rows. */
type Contents = Readonly<Record<string, unknown>>;

async function contentsOf(url: string): Promise<Contents> {
  const rows = await query(
    url,
    `select table_name as name, (xpath('//hash/text()', query_to_xml(format(
        'select md5(coalesce(string_agg(t::text, '','' order by t::text), '''')) as hash from farebox.%I t', table_name
      ), false, true, '')))[1]::text as hash
    from information_schema.tables where table_schema = 'farebox' and table_type = 'BASE TABLE'`,
  );
  return Object.fromEntries(rows.map(({ name, hash }) => [String(name), hash]));
}

async function query(
  url: string,
  text: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}
