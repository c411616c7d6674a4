/**
 * A database with funded consumers, created by the code that signs up accounts, and the proof at the end that its books
 * balance: so no measured path cut a corner.
 */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { asMicros, MICROS_PER_DOLLAR } from '../src/domain/money.ts';
import { createAccounts } from '../src/store/accounts/accounts.ts';
import { createDatabase } from '../src/store/database.ts';
import { migrate } from '../src/store/migrations.ts';
import { withClient, type Stack } from './stack.ts';

/** The charged consumers, with a key each. */
export const CONSUMERS = 10_000;
/** Batches of 100 charges to consumers drawn at random, for post-charges.sql. */
export const BATCHES = 1_000;
export const LEDGERS = 16;
/** Enough for all charges of a run. */
export const BALANCE = asMicros(1_000_000 * MICROS_PER_DOLLAR);
const BATCH = 100;
/** What a charge of post-charges.sql costs. */
export const AMOUNT_MICROS = 100;
const CLI = join(import.meta.dirname, '../src/cli.ts');

export interface Ledger {
  readonly name: string;
  readonly databaseUrl: string;
  /** The first account, which charges in every supported way. */
  readonly developerKey: string;
  readonly developerNumber: number;
  /** The second account, for the baselines' debits only. */
  readonly baselineKey: string;
  readonly baselineNumber: number;
  readonly developerKeys: readonly string[];
  readonly consumerKeys: readonly string[];
  /** Files with one consumer key per line: all keys, and only the first. */
  readonly keysFile: string;
  readonly hotKeyFile: string;
}

export async function createLedger(stack: Stack, name: string, seed: number): Promise<Ledger> {
  const databaseUrl = await stack.createDatabase(name);
  await migrate(databaseUrl);
  const accounts = await signUp(databaseUrl);
  await withClient(databaseUrl, async (client) => {
    await client.query('select setseed($1)', [(seed % 1e6) / 1e6]);
    // Consumers by number, for rows that charge by SQL alone.
    await client.query(`
      create schema bench;
      create table bench.consumers (n int primary key, ledger smallint not null, id uuid not null);
      create table bench.batches (
        n int primary key, ledgers smallint[] not null, consumers uuid[] not null, totals bigint[] not null,
        groups int[] not null, through bigint[] not null
      )
    `);
    await client.query(
      `insert into bench.consumers
       select a.n, c.ledger, c.id from unnest($1::uuid[]) with ordinality a (id, n)
       join farebox.consumers c on c.id = a.id`,
      [accounts.map(({ consumerId }) => consumerId)],
    );
    await client.query(drawBatches);
    await client.query(fundBaseline);
    await client.query('vacuum analyze');
  });
  const [first, second] = accounts;
  if (!first || !second) throw new Error('no account was made');
  const consumerKeys = accounts.map(({ consumerKey }) => consumerKey);
  const keysFile = join(stack.directory, `${name}-keys`);
  const hotKeyFile = join(stack.directory, `${name}-hot-key`);
  await writeFile(keysFile, consumerKeys.join('\n'));
  await writeFile(hotKeyFile, first.consumerKey);
  return {
    name,
    databaseUrl,
    developerKey: first.developerKey,
    developerNumber: await numberOf(databaseUrl, first.developerId),
    baselineKey: second.developerKey,
    baselineNumber: await numberOf(databaseUrl, second.developerId),
    developerKeys: accounts.map(({ developerKey }) => developerKey),
    consumerKeys,
    keysFile,
    hotKeyFile,
  };
}

function numberOf(databaseUrl: string, developerId: string): Promise<number> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ number: number }>(
      'select developer_number as number from farebox.accounts where developer_id = $1',
      [developerId],
    );
    return rows[0]?.number ?? 0;
  });
}

async function signUp(databaseUrl: string) {
  const database = await createDatabase(databaseUrl, { maxPoolSize: 2, onError: () => {} });
  const result = await createAccounts(
    database,
    Array.from({ length: CONSUMERS }, (_, n) => ({
      email: `bench+${n}@example.com`,
      balanceMicros: BALANCE,
    })),
    { keyPrefix: 'fare', ledgerCount: LEDGERS, consentCeilingMicros: undefined },
  );
  await database.end();
  if (result.kind !== 'created') throw new Error('the addresses are taken');
  return result.accounts;
}

/** Grouped by consumer and added up, as src/store/charges/post-charges.ts does it. */
const drawBatches = `
  insert into bench.batches (n, ledgers, consumers, totals, groups, through)
  with drawn as materialized (
    select batch, place, 1 + floor(random() * ${CONSUMERS})::int as n
    from generate_series(1, ${BATCHES}) batch cross join generate_series(1, ${BATCH}) place
  ), charges as (
    select batch, place, c.ledger, c.id,
      dense_rank() over (partition by batch order by c.ledger, c.id)::int as grp,
      ${AMOUNT_MICROS} * row_number() over (partition by batch, c.id order by place) as through
    from drawn join bench.consumers c using (n)
  ), grouped as (
    select batch, array_agg(ledger order by grp) as ledgers, array_agg(id order by grp) as consumers,
      array_agg(total order by grp) as totals
    from (select batch, grp, ledger, id, max(through) as total from charges group by 1, 2, 3, 4) g
    group by batch
  )
  select batch, ledgers, consumers, totals, array_agg(grp order by place), array_agg(through order by place)
  from charges join grouped using (batch) group by batch, ledgers, consumers, totals
`;

/** The consumers of debit.sql. It computes their ids, because a look-up would slow it down needlessly. */
const fundBaseline = `
  with ids as materialized (
    select n, ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as consumer_id
    from generate_series(1, ${CONSUMERS}) n
  ), accounts as (
    insert into farebox.accounts (id, email, ledger, consumer_id, developer_id)
    select uuidv7(), 'bench-baseline+' || n || '@example.com', 0, consumer_id, uuidv7() from ids
  ), consumers as (
    insert into farebox.consumers (ledger, id, credited_micros)
    select 0, consumer_id, ${BALANCE} from ids
    returning ledger, id, credited_micros
  ), movements as (
    insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, reason)
    select ledger, id, uuidv7(), 'adjustment', credited_micros, 'bench' from consumers
    returning ledger, consumer_id, id, amount_micros
  )
  insert into farebox.lots (ledger, consumer_id, movement_id, from_micros, to_micros)
  select ledger, consumer_id, id, 0, amount_micros from movements
`;

/** Adds the baselines' debits to the tails. Farebox does this with each charge, the baselines do not. */
export function noteBaseline({ databaseUrl, baselineNumber }: Ledger): Promise<void> {
  return withClient(databaseUrl, async (client) => {
    for (const statement of NOTE_CHARGES) await client.query(statement, [baselineNumber]);
  });
}

const NOTE_CHARGES = [
  `insert into farebox.earnings_tail (ledger, developer, minute, tool, amount_micros, charges)
   select min(ledger), developer, date_bin('1 minute', uuid_extract_timestamp(id), 'epoch'), tool,
     sum(amount_micros), count(*)
   from farebox.charges where developer = $1 group by 2, 3, 4`,
  `insert into farebox.attribution_tail
     (ledgers, consumers, spent_before, charge_group, through, developers, amounts)
   select array_agg(ledger), array_agg(consumer_id), array_agg(spent_micros - amount_micros),
     array_agg(place), array_agg(amount_micros), array_agg(developer), array_agg(amount_micros)
   from (
     select *, (n - 1) / 500 as chunk, ((n - 1) % 500 + 1)::int as place
     from (select *, row_number() over () as n from farebox.charges where developer = $1) c
   ) c group by chunk`,
];

/** The number of charges, however they were made. */
export function countCharges(ledger: Ledger): Promise<number> {
  return withClient(ledger.databaseUrl, async (client) => {
    const { rows } = await client.query<{ count: string }>('select count(*) from farebox.charges');
    return Number(rows[0]?.count);
  });
}

/** Throws with the findings unless `farebox doctor` passes. */
export async function proveWhole(ledger: Ledger): Promise<void> {
  const env = { PATH: process.env['PATH'], DATABASE_URL: ledger.databaseUrl };
  const command = [CLI, 'doctor', '--no-processor'];
  await promisify(execFile)(process.execPath, command, { env }).catch((error: unknown) => {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`farebox doctor found errors in ${ledger.name}:\n${stdout}${stderr}`);
  });
}
