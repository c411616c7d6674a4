/** What is measured: PostgreSQL and one API process on a temporary data directory, with funded consumers. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { pino } from 'pino';
import { asMicros, MICROS_PER_DOLLAR } from '../src/domain/money.ts';
import { startChild, type Child } from '../src/embedded/child.ts';
import { choosePort } from '../src/embedded/ports.ts';
import { startPostgres } from '../src/embedded/postgres.ts';
import { createAccounts } from '../src/store/accounts.ts';
import { createDatabase } from '../src/store/database.ts';
import { migrate } from '../src/store/migrations.ts';

const CONSUMERS = 10_000;
const BALANCE_DOLLARS = 1_000_000;
const ROOT = join(import.meta.dirname, '..');

export interface BenchStack {
  readonly databaseUrl: string;
  readonly postgresVersion: string;
  readonly apiUrl: string;
  readonly developerKey: string;
  readonly developerId: string;
  /** A file with one consumer key a line. */
  readonly keysFile: string;
  stop(): Promise<void>;
}

export async function startBenchStack(): Promise<BenchStack> {
  const directory = await mkdtemp(join(tmpdir(), 'farebox-bench-'));
  const postgres = await startPostgres({
    dataDir: join(directory, 'postgres'),
    logFile: join(directory, 'postgres.log'),
    env: process.env,
    port: await choosePort(),
  });
  await migrate(postgres.url, pino({ level: 'warn' }));
  const accounts = await fund(postgres.url);
  const keysFile = join(directory, 'keys');
  await writeFile(keysFile, accounts.map(({ consumerKey }) => consumerKey).join('\n'));
  const port = await choosePort();
  const api = await startApi(postgres.url, port, join(directory, 'api.log'));
  const [first] = accounts;
  if (!first) throw new Error('no account was made');
  return {
    databaseUrl: postgres.url,
    postgresVersion: postgres.version,
    apiUrl: `http://127.0.0.1:${port}`,
    developerKey: first.developerKey,
    developerId: first.developerId,
    keysFile,
    stop: async () => {
      await api.stop();
      await postgres.stop();
      await rm(directory, { recursive: true });
    },
  };
}

async function fund(databaseUrl: string) {
  const database = await createDatabase(databaseUrl, { maxPoolSize: 2, onError: () => {} });
  const balance = asMicros(BALANCE_DOLLARS * MICROS_PER_DOLLAR);
  const result = await createAccounts(
    database,
    Array.from({ length: CONSUMERS }, (_, n) => ({ email: `bench+${n}@example.com`, balance })),
    { keyPrefix: 'fare', ledgerCount: 16, consentCeiling: undefined },
  );
  await database.end();
  if (result.kind !== 'created') throw new Error('the addresses are taken');
  await fundBaseline(databaseUrl, balance);
  return result.accounts;
}

/** The baseline's own consumers, whose ids it can compute: a look-up would cost it what it need not. */
async function fundBaseline(databaseUrl: string, balance: number): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(
    `insert into farebox.consumers (ledger, id, credited_micros)
     select 0, ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1::int8
     from generate_series(1, ${CONSUMERS}) n`,
    [balance],
  );
  await client.query('vacuum analyze');
  await client.end();
}

function startApi(databaseUrl: string, port: number, logFile: string): Promise<Child> {
  return startChild({
    name: 'api',
    command: [process.execPath, join(ROOT, 'src/cli.ts'), 'api'],
    logFile,
    ready: 'message',
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      PORT: String(port),
      MASTER_SECRET: randomBytes(32).toString('base64url'),
      LOG_LEVEL: 'warn',
      // Charging needs neither; both are set because an API process asks for them.
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      STRIPE_SECRET_KEY: 'sk_test_bench',
      STRIPE_WEBHOOK_SECRET: 'whsec_bench',
    },
  });
}
