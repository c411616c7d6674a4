/**
 * `charges` is partitioned by month of its id, a UUIDv7. A month that has no partition when it comes
 * falls into `charges_rest`; so months are made ahead, by migrate and at API start.
 */
import { Client } from 'pg';
import { uuidFloor } from '../domain/ids.ts';

const MONTHS_AHEAD = 3;

/** Makes the partitions of this month and the next three, those that are missing. Idempotent. */
export async function ensureChargePartitions(databaseUrl: string, nowMs: number): Promise<void> {
  const client = new Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 });
  await client.connect();
  try {
    // One process at a time; the lock ends with the session.
    await client.query(`select pg_advisory_lock(hashtext('farebox.charge_partitions'))`);
    const now = new Date(nowMs);
    for (let ahead = 0; ahead <= MONTHS_AHEAD; ahead += 1) {
      await ensureMonth(client, now.getUTCFullYear(), now.getUTCMonth() + ahead);
    }
  } finally {
    await client.end();
  }
}

async function ensureMonth(client: Client, year: number, month: number): Promise<void> {
  const from = new Date(Date.UTC(year, month));
  const to = new Date(Date.UTC(year, month + 1));
  const name = `charges_${from.toISOString().slice(0, 7).replace('-', '_')}`;
  const { rows } = await client.query<{ attached: boolean }>(
    `select exists (select from pg_inherits where inhrelid = to_regclass('farebox.${name}')) as attached`,
  );
  if (rows[0]?.attached === true) return;
  // A plain table first, then ATTACH, which takes a weaker lock on `charges` than CREATE … PARTITION OF
  // would; and not for longer than traffic can wait.
  await client.query(
    `create table if not exists farebox.${name} (like farebox.charges including all)`,
  );
  await client.query('begin');
  await client.query(`set local lock_timeout = '2s'`);
  await client.query(
    `alter table farebox.charges attach partition farebox.${name}
     for values from ('${uuidFloor(from.getTime())}') to ('${uuidFloor(to.getTime())}')`,
  );
  await client.query('commit');
}
