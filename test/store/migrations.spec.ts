/** A database that has charges is brought to this release without losing what they say. */
import assert from 'node:assert/strict';
import { hash, randomUUIDv7 } from 'node:crypto';
import { runner } from 'node-pg-migrate';
import { Client } from 'pg';
import { pino } from 'pino';
import { asMicros } from '../../src/domain/money.ts';
import { auditLedger } from '../../src/store/audit/ledger-checks.ts';
import { createDatabase } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrations.ts';
import { ensureChargePartitions } from '../../src/store/charges/partitions.ts';
import { createEmptyDatabase } from '../support/stack.ts';
import { post } from './charge-drafts.ts';

/** The last migration before charges became narrower. */
const BEFORE = 7;
const KEY = 'order-17';
const SENT = '["search",0.0001,null]';

describe('migrate', () => {
  it('keeps charges, their keys and their sums when their rows become narrower', async () => {
    const empty = await createEmptyDatabase();
    const client = new Client({ connectionString: empty.url });
    await client.connect();
    const database = await createDatabase(empty.url, { maxPoolSize: 1, onError: () => {} });
    try {
      await migrateTo(client, BEFORE);
      await ensureChargePartitions(empty.url, Date.now());
      const [consumerId, developerId, id] = [randomUUIDv7(), randomUUIDv7(), randomUUIDv7()];
      await client.query(ACCOUNT, [randomUUIDv7(), consumerId, developerId]);
      const key = hash('sha256', consumerId + developerId + KEY).slice(0, 32);
      const fingerprint = Number.parseInt(hash('sha256', SENT).slice(0, 12), 16);
      await client.query(CHARGE, [id, consumerId, developerId, key, fingerprint]);

      await migrate(empty.url, pino({ level: 'silent' }));

      assert.deepEqual(await auditLedger(database), []);
      const { rows } = await client.query<{ metadata: string; number: number; partition: string }>(
        `select metadata, developer as number, c.tableoid::regclass::text as partition
         from farebox.charges c`,
      );
      assert.deepEqual(
        rows.map(({ metadata }) => JSON.parse(metadata)),
        [{ order: 17 }],
      );
      assert.doesNotMatch(rows[0]?.partition ?? '', /rest/);
      const draft = {
        id: randomUUIDv7(),
        ledger: 3,
        consumerId,
        developerId,
        developerNumber: rows[0]?.number ?? 0,
        tool: 'search',
        amountMicros: asMicros(100),
        idempotencyHash: key.slice(0, 22),
        fingerprint: hash('sha256', SENT).slice(0, 10),
        metadata: null,
      };
      const replay = await post(database, [draft]);
      assert.deepEqual(replay, [
        { kind: 'replayed', id, amountMicros: 100, balanceMicros: 900, receiptKey: 1 },
      ]);
      const reused = await post(database, [{ ...draft, fingerprint: '0000000000' }]);
      assert.deepEqual(reused, [{ kind: 'key_reused' }]);
    } finally {
      await database.end();
      await client.end();
      await empty.drop();
    }
  });
});

async function migrateTo(client: Client, count: number): Promise<void> {
  await runner({
    dbClient: client,
    dir: new URL('../../migrations', import.meta.url).pathname,
    direction: 'up',
    count,
    migrationsTable: 'migrations',
    migrationsSchema: 'farebox',
    createMigrationsSchema: true,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
  });
}

const ACCOUNT = `
  with account as (
    insert into farebox.accounts (id, email, ledger, consumer_id, developer_id)
    values ($1, 'before@example.com', 3, $2, $3)
  ), consumer as (
    insert into farebox.consumers (ledger, id, credited_micros, spent_micros) values (3, $2, 1000, 100)
  ), movement as (
    insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, reason)
    values (3, $2, $1, 'adjustment', 1000, 'test')
  )
  insert into farebox.lots (ledger, consumer_id, movement_id, from_micros, to_micros)
  values (3, $2, $1, 0, 1000)
`;

const CHARGE = `
  insert into farebox.charges (amount_micros, spent_micros, balance_micros, request_fingerprint, id,
    consumer_id, developer_id, idempotency_hash, ledger, receipt_key, tool, metadata)
  values (100, 100, 900, $5, $1, $2, $3, $4::uuid, 3, 1, 'search', '{"order":17}')
`;
