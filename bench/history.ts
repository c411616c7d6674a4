/**
 * Many consumers and charges, like a service after a month. Set-based SQL writes them in the order of their time, so a
 * consumer's charges are scattered, and they are consistent to the last micro-dollar.
 */
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import type { Client } from 'pg';
import { composeKey } from '../src/domain/api-keys.ts';
import { DAY_MS } from '../src/domain/durations.ts';
import { hashOfKey } from '../src/store/accounts/api-keys.ts';
import { createDatabase } from '../src/store/database.ts';
import { ensureChargePartitions } from '../src/store/charges/partitions.ts';
import { rebuildRollups } from '../src/store/earnings/rollups.ts';
import { BALANCE, LEDGERS, type Ledger } from './ledger.ts';
import { withClient } from './stack.ts';

const CHUNK = 20_000;
const DAYS = 30;
/** The time slots in which each consumer is charged. All but the first ten consumers skip the last one. */
const TURNS = 10;
/** The first developer has made half of all charges. */
const DEVELOPERS = 1_000;
const TOOLS = 10;

/** Adds accounts with a key and a balance each to the existing ones. Writes their keys to the file. */
export async function addConsumers(ledger: Ledger, count: number, keysFile: string): Promise<void> {
  const file = createWriteStream(keysFile);
  file.write(ledger.consumerKeys.join('\n'));
  await withClient(ledger.databaseUrl, async (client) => {
    // The audit log would take longer than all the rest. These accounts are older than it is.
    await setTriggers(client, 'disable');
    for (let made = 0; made < count; made += CHUNK) {
      const keys = Array.from({ length: Math.min(CHUNK, count - made) }, () =>
        composeKey('fare', 'consumer', randomBytes(64), 'live'),
      );
      await client.query(SIGN_UP, [ledger.consumerKeys.length + made, keys.map(hashOfKey)]);
      file.write(`\n${keys.join('\n')}`);
    }
    await setTriggers(client, 'enable');
  });
  file.end();
  await once(file, 'close');
}

async function setTriggers(client: Client, verb: 'enable' | 'disable'): Promise<void> {
  for (const table of ['accounts', 'api_keys', 'top_ups']) {
    await client.query(`alter table farebox.${table} ${verb} trigger user`);
  }
}

const SIGN_UP = `
  with signed_up as materialized (
    select $1::int + n as n, hash, ($1::int + n) % ${LEDGERS} as ledger, uuidv7() as account_id,
      uuidv7() as consumer_id, uuidv7() as developer_id, uuidv7() as movement_id,
      uuidv7() as top_up_id, now() - interval '${DAYS} days' as created_at
    from unnest($2::text[]) with ordinality u (hash, n)
  ), accounts as (
    insert into farebox.accounts (id, email, ledger, consumer_id, developer_id, created_at)
    select account_id, 'bench-more+' || n || '@example.com', ledger, consumer_id, developer_id, created_at
    from signed_up
  ), keys as (
    insert into farebox.api_keys (id, hash, kind, account_id, last_four, created_at)
    select uuidv7(), decode(hash, 'hex'), 'consumer', account_id, right(hash, 4), created_at from signed_up
  ), consumers as (
    insert into farebox.consumers (ledger, id, credited_micros)
    select ledger, consumer_id, ${BALANCE} from signed_up
  ), top_ups as (
    insert into farebox.top_ups
      (id, ledger, consumer_id, account_id, method, status, amount_micros, created_at, opened_at, completed_at)
    select top_up_id, ledger, consumer_id, account_id, 'manual', 'completed', ${BALANCE}, created_at, now(), now()
    from signed_up
  ), movements as (
    insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, top_up_id)
    select ledger, consumer_id, movement_id, 'top_up', ${BALANCE}, top_up_id from signed_up
  ), lots as (
    insert into farebox.lots (ledger, consumer_id, movement_id, from_micros, to_micros, top_up_id)
    select ledger, consumer_id, movement_id, 0, ${BALANCE}, top_up_id from signed_up
  )
  insert into bench.consumers (n, ledger, id) select n, ledger, consumer_id from signed_up
`;

/**
 * The first consumer has `hotCharges`, the next nine have ten each, the others up to `consumers` nine: ten
 * million when there are a million consumers and as many hot charges.
 */
export async function addCharges(
  ledger: Ledger,
  { consumers, hotCharges }: { consumers: number; hotCharges: number },
  say: (text: string) => void,
): Promise<void> {
  await ensureChargePartitions(ledger.databaseUrl, Date.now() - (DAYS + 1) * DAY_MS);
  await withClient(ledger.databaseUrl, async (client) => {
    const { rows } = await client.query<{ developers: number[] }>(`
      select array_agg(developer_number) as developers
      from (select developer_number from farebox.accounts order by id limit ${DEVELOPERS}) first
    `);
    for (let turn = 0; turn < TURNS; turn += 1) {
      const slots = [turn * consumers + 1, (turn + 1) * consumers];
      const developers = [ledger.developerNumber, rows[0]?.developers];
      await client.query(CHARGE, [...slots, consumers, hotCharges, ...developers]);
      say(`charges up to day ${((turn + 1) * DAYS) / TURNS} of ${DAYS} written`);
    }
    await settle(ledger, client);
  });
}

const CHARGE = `
  insert into farebox.charges (amount_micros, spent_micros, balance_micros, request_fingerprint, id,
    consumer_id, developer, idempotency_hash, ledger, receipt_key, tool)
  select 100, 100 * seq, ${BALANCE} - 100 * seq, slot,
    uuidv7(make_interval(secs => -${DAYS} * 86400.0 * (1 - slot / ($3::int8 * ${TURNS})::float8))),
    c.id, case slot % 2 when 0 then $5::int else ($6::int[])[1 + (slot / 2) % ${DEVELOPERS}] end,
    hashint8extended(2 * slot + (c.n = 1)::int, seq), c.ledger, 1, 'tool ' || slot % ${TOOLS}
  from (
    select slot, charged.n, charged.seq
    from generate_series($1::int8, $2::int8) slot cross join lateral (
      select n, seq from (select (slot - 1) % $3 + 1 as n, (slot - 1) / $3 + 1 as seq) own
      where n > 1 and (seq < ${TURNS} or n <= 10)
      union all
      select 1, seq from generate_series(
        (slot - 1) * $4::int8 / ($3 * ${TURNS}) + 1, slot * $4::int8 / ($3 * ${TURNS})) seq
    ) charged
  ) drawn join bench.consumers c on c.n = drawn.n
  order by slot, seq
`;

/** Derives counters, tool names and earnings from the rows, then vacuums the tables as autovacuum would. */
async function settle({ databaseUrl }: Ledger, client: Client): Promise<void> {
  await client.query(`
    update farebox.consumers c set spent_micros = h.micros
    from (select ledger, consumer_id, sum(amount_micros) as micros from farebox.charges group by 1, 2) h
    where c.ledger = h.ledger and c.id = h.consumer_id
  `);
  await client.query(`
    insert into farebox.tools (id, developer_id, name)
    select uuidv7(), a.developer_id, 'tool ' || n from farebox.accounts a, generate_series(0, ${TOOLS - 1}) n
    where exists (select from farebox.charges where developer = a.developer_number)
    on conflict do nothing
  `);
  const database = await createDatabase(databaseUrl, { maxPoolSize: 1, onError: () => {} });
  await rebuildRollups(database);
  await database.end();
  await client.query('vacuum full farebox.consumers');
  await client.query('vacuum analyze');
  await client.query('checkpoint');
}
