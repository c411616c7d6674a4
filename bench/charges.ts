/**
 * The rows about charging: over HTTP in every supported way, compared with Postgres alone, with a hand-written server,
 * and with the limits of Koa and of the charge statement.
 */
import { chargeByClient } from './client-calls.ts';
import {
  AMOUNT_MICROS,
  BATCHES,
  CONSUMERS,
  countCharges,
  createLedger,
  noteBaseline,
  proveWhole,
  type Ledger,
} from './ledger.ts';
import { BATCH, chargeInBatches, chargeOverHttp, holdOverHttp } from './load.ts';
import {
  measureInTurn,
  type Effort,
  type Measured,
  type RoundsOptions,
  type Row,
  type RowResult,
} from './rounds.ts';
import { runScript } from './scripts.ts';
import { makeSpendKeys, type SpendKeysFiles } from './spend-keys.ts';
import { startApi, startRival, type HttpServer, type Stack } from './stack.ts';

const CONNECTIONS = [64, 128, 256, 512];
const BATCH_CONNECTIONS = [4, 8, 16];
const PGBENCH_CLIENTS = [8, 16, 32, 64];
/** Connections that contend for one row are fastest when they are few. */
const PGBENCH_CLIENTS_OF_ONE_ROW = [2, 4, ...PGBENCH_CLIENTS];
const STATEMENT_CLIENTS = [1, 2, 4];
const CALLS = 256;

interface Servers {
  readonly ledger: Ledger;
  readonly spendKeys: SpendKeysFiles;
  readonly api: HttpServer;
  readonly fastify: HttpServer;
  readonly koa: HttpServer;
}

/** Every row in the order of measurement, next to the rows that it is compared with. */
const ROWS: readonly (Omit<Row, 'measure'> & {
  readonly measure: (servers: Servers, effort: Effort) => Promise<Measured>;
})[] = [
  {
    key: 'fastify',
    name: 'Fastify + pg by hand',
    connections: CONNECTIONS,
    measure: ({ ledger, fastify }, effort) =>
      chargeOverHttp({ ...ledger, developerKey: ledger.baselineKey, url: fastify.url }, effort),
  },
  {
    key: 'K',
    name: 'bare Koa, no database',
    connections: CONNECTIONS,
    measure: ({ ledger, koa }, effort) => chargeOverHttp({ ...ledger, url: koa.url }, effort),
  },
  {
    key: 'U',
    name: 'single charges',
    connections: CONNECTIONS,
    measure: ({ ledger, api }, effort) => chargeOverHttp({ ...ledger, url: api.url }, effort),
  },
  {
    key: 'S1',
    name: 'charges by spend keys, one budget',
    connections: CONNECTIONS,
    measure: ({ ledger, spendKeys, api }, effort) =>
      chargeOverHttp({ ...ledger, keysFile: spendKeys[1], url: api.url }, effort),
  },
  {
    key: 'S3',
    name: 'charges by spend keys, three budgets deep',
    connections: CONNECTIONS,
    measure: ({ ledger, spendKeys, api }, effort) =>
      chargeOverHttp({ ...ledger, keysFile: spendKeys[3], url: api.url }, effort),
  },
  {
    key: 'D',
    name: 'holds, captured',
    connections: CONNECTIONS,
    measure: ({ ledger, api }, effort) => holdOverHttp({ ...ledger, url: api.url }, effort),
  },
  {
    key: 'pgU',
    name: 'debits by Postgres alone',
    connections: PGBENCH_CLIENTS,
    measure: ({ ledger }, effort) => debit(ledger, CONSUMERS, effort),
  },
  {
    key: 'B',
    name: `batches of ${BATCH}`,
    connections: BATCH_CONNECTIONS,
    measure: ({ ledger, api }, effort) => chargeInBatches({ ...ledger, url: api.url }, effort),
  },
  {
    key: 'F',
    name: `the charge statement alone, ${BATCH} a call`,
    connections: STATEMENT_CLIENTS,
    measure: ({ ledger }, effort) => postByStatement(ledger, effort),
  },
  {
    key: 'C',
    name: 'through the client library',
    connections: [CALLS],
    measure: ({ ledger, api }, effort) => chargeByClient(ledger, api, effort),
  },
  {
    key: 'H',
    name: 'one hot consumer',
    connections: CONNECTIONS,
    measure: ({ ledger, api }, effort) =>
      chargeOverHttp({ ...ledger, keysFile: ledger.hotKeyFile, url: api.url }, effort),
  },
  {
    key: 'HB',
    name: 'one hot budget of 10,000 spend keys',
    connections: CONNECTIONS,
    measure: ({ ledger, spendKeys, api }, effort) =>
      chargeOverHttp({ ...ledger, keysFile: spendKeys.hot, url: api.url }, effort),
  },
  {
    key: 'pgH',
    name: 'debits by Postgres alone, of one row',
    connections: PGBENCH_CLIENTS_OF_ONE_ROW,
    measure: ({ ledger }, effort) => debit(ledger, 1, effort),
  },
  {
    key: 'L',
    name: 'one connection',
    connections: [1],
    measure: ({ ledger, api }, effort) => chargeOverHttp({ ...ledger, url: api.url }, effort),
  },
  {
    key: 'pgL',
    name: 'debits by Postgres alone, one client',
    connections: [1],
    measure: ({ ledger }, effort) => debit(ledger, CONSUMERS, effort),
  },
];

export const CHARGE_ROWS = ROWS.map(({ key }) => key);

/** Runs only the named rows, on a separate database, and proves its books at the end. */
export async function measureCharges(
  stack: Stack,
  keys: readonly string[],
  options: RoundsOptions,
): Promise<{ rows: RowResult[]; apiPeakMemoryMiB: number | undefined }> {
  const ledger = await createLedger(stack, 'charges', options.seed);
  const spendKeys = await makeSpendKeys(ledger, stack.directory);
  const api = await startApi(stack, ledger.databaseUrl);
  const fastify = await startRival(stack, 'fastify', {
    DATABASE_URL: ledger.databaseUrl,
    MASTER_SECRET: 'a secret of the hand-written service',
  });
  const koa = await startRival(stack, 'koa', { ANSWER: await makeCharge(ledger, api) });
  const servers = { ledger, spendKeys, api, fastify, koa };
  try {
    const rows = await measureInTurn(
      ROWS.filter(({ key }) => keys.includes(key)).map(({ measure, ...row }) => ({
        ...row,
        measure: (effort) => measure(servers, effort),
      })),
      options,
    );
    const apiPeakMemoryMiB = await api.peakMemoryMiB();
    await proveAllThere(ledger, rows);
    await noteBaseline(ledger);
    await proveWhole(ledger);
    return { rows, apiPeakMemoryMiB };
  } finally {
    await Promise.all([api, fastify, koa].map((server) => server.stop()));
  }
}

function debit(ledger: Ledger, consumers: number, effort: Effort): Promise<Measured> {
  const { databaseUrl, baselineNumber: developer } = ledger;
  return runScript({ databaseUrl, file: 'debit.sql', variables: { consumers, developer } }, effort);
}

async function postByStatement(ledger: Ledger, effort: Effort): Promise<Measured> {
  const { databaseUrl, developerNumber: developer } = ledger;
  const variables = { batches: BATCHES, developer, amount: AMOUNT_MICROS };
  const calls = await runScript({ databaseUrl, file: 'post-charges.sql', variables }, effort);
  return { ...calls, count: calls.count * BATCH, perSecond: calls.perSecond * BATCH };
}

/** The body of a reply, which Koa repeats. */
async function makeCharge(ledger: Ledger, api: HttpServer): Promise<string> {
  const response = await fetch(`${api.url}/v1/charges`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${ledger.developerKey}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ apiKey: ledger.consumerKeys[0], tool: 'search', amount: 0.0001 }),
  });
  const text = await response.text();
  if (response.status !== 201) throw new Error(`the first charge was refused: ${text}`);
  return text;
}

/** Checks that every charge that was confirmed is in the table. */
async function proveAllThere(ledger: Ledger, rows: readonly RowResult[]): Promise<void> {
  const answered = rows
    .filter(({ key }) => key !== 'K')
    .flatMap(({ variants }) => variants.flatMap(({ rounds }) => rounds))
    .reduce((sum, { count }) => sum + count, 0);
  const found = await countCharges(ledger);
  if (found < answered)
    throw new Error(`${answered} charges were confirmed, ${found} are in the table`);
}
