/**
 * Compares charges and reads with much data and with little, on two ledgers in turn. The small one has ten thousand
 * charges, the large one a month of a busy service.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { wireId } from '../src/domain/ids.ts';
import { createDatabase } from '../src/store/database.ts';
import { rollUp } from '../src/store/earnings/rollups.ts';
import { addCharges, addConsumers } from './history.ts';
import { CONSUMERS, createLedger, proveWhole, type Ledger } from './ledger.ts';
import { chargeOverHttp, readOverHttp } from './load.ts';
import { measureInTurn, type RoundsOptions, type Row, type RowResult } from './rounds.ts';
import { startApi, withClient, type HttpServer, type Stack } from './stack.ts';

const CONNECTIONS = [64, 128, 256];
/** Enough to keep the server busy, few enough that latencies contain no queueing. */
const READERS = [4];
/** The small ledger: a thousand consumers with nine or ten charges; one of them has a few pages instead. */
const SMALL = { consumers: 1_000, hotCharges: 1_000 };
/** The default of the schedule. */
const ROLL_UP_EVERY_MS = 5_000;

interface Side {
  readonly word: 'small' | 'large';
  readonly ledger: Ledger;
  readonly api: HttpServer;
  readonly hotCharges: number;
}

export async function measureLarge(
  stack: Stack,
  consumers: number,
  options: RoundsOptions,
): Promise<{ rows: RowResult[]; apiPeakMemoryMiB: number | undefined }> {
  const small = await createLedger(stack, 'small', options.seed);
  await addCharges(small, SMALL, () => {});
  const large = await createLedger(stack, 'large', options.seed);
  const allKeysFile = join(stack.directory, 'large-all-keys');
  options.say(`Writing ${consumers} consumers and ${consumers * 10} charges.`);
  await addConsumers(large, consumers - CONSUMERS, allKeysFile);
  await addCharges(large, { consumers, hotCharges: consumers }, options.say);
  const sides: Side[] = [];
  const rollups = [small, large].map(({ databaseUrl }) => keepRolledUp(databaseUrl));
  try {
    for (const [word, ledger, hotCharges] of [
      ['small', small, SMALL.hotCharges],
      ['large', large, consumers],
    ] as const) {
      const api = await startApi(stack, ledger.databaseUrl);
      sides.push({ word, ledger, api, hotCharges });
    }
    const rows = await rowsOf(sides, allKeysFile);
    const results = await measureInTurn(rows, options);
    const apiPeakMemoryMiB = await sides.at(-1)?.api.peakMemoryMiB();
    for (const { ledger } of sides) await proveWhole(ledger);
    return { rows: results, apiPeakMemoryMiB };
  } finally {
    await Promise.all(rollups.map((stop) => stop()));
    await Promise.all(sides.map(({ api }) => api.stop()));
  }
}

/** Does the scheduled work of the worker, because the bench runs without Temporal. Returns a function that ends it. */
function keepRolledUp(databaseUrl: string): () => Promise<void> {
  const stopping = new AbortController();
  const rolling = (async () => {
    const database = await createDatabase(databaseUrl, { maxPoolSize: 1, onError: () => {} });
    while (!stopping.signal.aborted) {
      while ((await rollUp(database)).hasMore);
      await delay(ROLL_UP_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => {});
    }
    await database.end();
  })();
  return () => {
    stopping.abort();
    return rolling;
  };
}

/** Interleaved, so each row is measured right after the one that it is compared with. */
async function rowsOf(sides: readonly Side[], allKeysFile: string): Promise<Row[]> {
  const [first = [], second = []] = await Promise.all(sides.map(rowsOfSide));
  const paired = first.flatMap((row, index) => [row, ...second.slice(index, index + 1)]);
  const large = sides.find(({ word }) => word === 'large');
  if (!large) return paired;
  const all: Row = {
    key: 'large U of all',
    name: 'large: single charges, of all consumers',
    connections: CONNECTIONS,
    measure: (effort) =>
      chargeOverHttp({ ...large.ledger, keysFile: allKeysFile, url: large.api.url }, effort),
  };
  return [...paired.slice(0, 2), all, ...paired.slice(2)];
}

async function rowsOfSide({ word, ledger, api, hotCharges }: Side): Promise<Row[]> {
  const [hotKey = '', tenKey = ''] = ledger.consumerKeys;
  const charging = { ...ledger, url: api.url };
  const read = (key: string, name: string, consumerKey: string, path: string): Row => ({
    key: `${word} ${key}`,
    name: `${word}: ${name}`,
    connections: READERS,
    measure: (effort) => readOverHttp(api.url + path, consumerKey, effort),
  });
  const deep = `/v1/usage?cursor=${await middleCursor(ledger, hotCharges)}`;
  const many = `of ${hotCharges} charges`;
  const byTool = '/v1/charges?tool=tool%202';
  const byConsumer = `/v1/charges?consumerId=${await idOfSecond(ledger)}`;
  return [
    {
      key: `${word} U`,
      name: `${word}: single charges`,
      connections: CONNECTIONS,
      measure: (effort) => chargeOverHttp(charging, effort),
    },
    {
      key: `${word} L`,
      name: `${word}: one connection`,
      connections: [1],
      measure: (effort) => chargeOverHttp(charging, effort),
    },
    read('balance', 'balance', hotKey, '/v1/balance'),
    read('usage of 10', 'usage, first page and total, of 10 charges', tenKey, '/v1/usage'),
    read('usage', `usage, first page and total, ${many}`, hotKey, '/v1/usage'),
    read('usage, deep', `usage, a page half way down, ${many}`, hotKey, deep),
    read(
      'earnings',
      'earnings of the developer with half of all',
      ledger.developerKey,
      '/v1/earnings',
    ),
    read('tools', 'tools of the developer with half of all', ledger.developerKey, '/v1/tools'),
    read(
      'top-ups',
      'top-ups of the developer with half of all',
      ledger.developerKey,
      '/v1/top-ups',
    ),
    read(
      'charges',
      'charges of the developer with half of all',
      ledger.developerKey,
      '/v1/charges',
    ),
    read('charges of a tool', 'the same, of one tool', ledger.developerKey, byTool),
    read('charges of a consumer', 'the same, of one consumer', ledger.developerKey, byConsumer),
  ];
}

/** The id of the consumer with ten charges. */
async function idOfSecond({ databaseUrl }: Ledger): Promise<string> {
  const { rows } = await withClient(databaseUrl, (client) =>
    client.query<{ id: string }>('select id from bench.consumers where n = 2'),
  );
  return wireId('consumer', rows[0]?.id ?? '');
}

/** A cursor in the middle of the first consumer's charges. */
async function middleCursor({ databaseUrl }: Ledger, hotCharges: number): Promise<string> {
  const { rows } = await withClient(databaseUrl, (client) =>
    client.query<{ id: string }>(
      `select h.id from bench.consumers c
       join farebox.charges h on h.ledger = c.ledger and h.consumer_id = c.id
       where c.n = 1 order by h.id desc offset $1 limit 1`,
      [hotCharges / 2],
    ),
  );
  return wireId('charge', rows[0]?.id ?? '');
}
