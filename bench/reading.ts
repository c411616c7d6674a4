/**
 * Lists, statements and exports over millions of charges, with three years of months, one reader at a time, and the
 * peak memory of an API process. One developer has half of the charges and one consumer has half of them; the others
 * have the rest. The balance, a probe of one row, is the baseline.
 */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { wireId } from '../src/domain/ids.ts';
import { latenciesOf } from './latencies.ts';
import { createLedger, type Ledger } from './ledger.ts';
import { DAYS, daysAgo, fillMonths, MONTHS, RARE, SELDOM } from './months.ts';
import { startApi, startStack, withClient } from './stack.ts';

const { values: options } = parseArgs({
  options: {
    charges: { type: 'string', default: '2000000' },
    requests: { type: 'string', default: '300' },
  },
});
const CHARGES = Number(options.charges);
const REQUESTS = Number(options.requests);
const TARGET_P99_MS = 30;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function measure(name: string, url: string, key: string): Promise<void> {
  const latenciesMs: number[] = [];
  for (let n = 0; n < REQUESTS + 20; n += 1) {
    const start = performance.now();
    const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}: ${text}`);
    if (n >= 20) latenciesMs.push(performance.now() - start);
  }
  const { p50Ms, p99Ms } = latenciesOf(latenciesMs);
  const verdict = p99Ms < TARGET_P99_MS ? 'under' : 'NOT UNDER';
  say(
    `${name}: p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, ${verdict} ${TARGET_P99_MS}`,
  );
}

async function download(name: string, url: string, key: string): Promise<void> {
  const start = performance.now();
  const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  let [bytes, rows] = [0, -1];
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length;
    for (const byte of chunk) if (byte === 0x0a) rows += 1;
  }
  const seconds = (performance.now() - start) / 1_000;
  const each = (seconds / rows) * 1e6;
  say(
    `${name}: ${rows} rows, ${(bytes / 2 ** 20).toFixed(0)} MiB, ${seconds.toFixed(1)} s, ${each.toFixed(1)} us a row`,
  );
}

async function read(ledger: Ledger, url: string): Promise<void> {
  const { developerKey, consumerKeys } = ledger;
  const [hotKey = '', dormantKey = ''] = consumerKeys;
  const middle = await withClient(ledger.databaseUrl, async (client) => {
    const { rows } = await client.query<{ id: string; consumer: string }>(
      `select h.id, h.consumer_id as consumer from farebox.charges h
       where developer = 1 and consumer_id <> (select id from bench.consumers where n = 1)
       order by h.id offset $1 limit 1`,
      [CHARGES / 8],
    );
    return rows[0] ?? { id: '', consumer: '' };
  });
  const cursor = wireId('charge', middle.id);
  const range = `from=${daysAgo(20)}&to=${daysAgo(19)}`;
  const month = daysAgo(DAYS / 2).slice(0, 7);
  for (const [name, path] of [
    ['charges, first page', '/v1/charges'],
    ['charges, half way down', `/v1/charges?cursor=${cursor}`],
    ['charges of a day', `/v1/charges?${range}`],
    [
      'charges of a consumer who has few',
      `/v1/charges?consumerId=${wireId('consumer', middle.consumer)}`,
    ],
    ['charges of the usual tool', '/v1/charges?tool=search'],
    [`charges of a tool that has ${RARE}`, '/v1/charges?tool=rare'],
    [`charges of a tool that has ${SELDOM}`, '/v1/charges?tool=seldom'],
    ['charges of a tool that has none', '/v1/charges?tool=none'],
  ] as const) {
    await measure(name, url + path, developerKey);
  }
  await measure('developer statement', `${url}/v1/statements/${month}`, developerKey);
  await measure('usage, first page and total', `${url}/v1/usage`, hotKey);
  await measure('usage of a day, and its total', `${url}/v1/usage?${range}`, hotKey);
  await measure('balance', `${url}/v1/balance`, hotKey);
  await measure(`usage of a dormant consumer, ${MONTHS} months`, `${url}/v1/usage`, dormantKey);
}

const stack = await startStack();
try {
  const ledger = await createLedger(stack, 'reading', 1);
  await fillMonths(ledger, CHARGES);
  say(`${CHARGES} charges; load of the machine ${loadavg()[0]?.toFixed(1)}.`);
  const api = await startApi(stack, ledger.databaseUrl);
  const memory = async (when: string) =>
    say(`Peak memory of an API process ${when}: ${(await api.peakMemoryMiB())?.toFixed(0)} MiB.`);
  try {
    await read(ledger, api.url);
    await memory('after lists');
    const [hotKey = ''] = ledger.consumerKeys;
    await download('charges.csv', `${api.url}/v1/charges.csv`, ledger.developerKey);
    await download('usage.csv', `${api.url}/v1/usage.csv`, hotKey);
    await download('earnings.csv', `${api.url}/v1/earnings.csv?interval=hour`, ledger.developerKey);
    await memory('after exports');
    const month = daysAgo(DAYS / 2).slice(0, 7);
    await download('consumer statement', `${api.url}/v1/statements/${month}.csv`, hotKey);
  } finally {
    await api.stop();
  }
} finally {
  await stack.stop();
}
