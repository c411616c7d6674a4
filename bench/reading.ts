/**
 * Lists, statements and exports over millions of charges, with three years of months, one reader at a time, and the
 * peak memory of an API process. One developer has half of the charges and one consumer has half of them; the others
 * have the rest. The balance, a probe of one row, is the baseline.
 */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { wireId } from '../src/domain/ids.ts';
import { createDatabase } from '../src/store/database.ts';
import { ensureChargePartitions } from '../src/store/charges/partitions.ts';
import { rebuildRollups } from '../src/store/earnings/rollups.ts';
import { latenciesOf } from './latencies.ts';
import { BALANCE, CONSUMERS, createLedger, type Ledger } from './ledger.ts';
import { startApi, startStack, withClient } from './stack.ts';

const { values: options } = parseArgs({
  options: {
    charges: { type: 'string', default: '2000000' },
    requests: { type: 'string', default: '300' },
  },
});
const CHARGES = Number(options.charges);
const REQUESTS = Number(options.requests);
const DAYS = 30;
const MONTHS = 36;
const DAY_MS = 86_400_000;
/** Charges for rarely used tools, each in a different hour. */
const RARE = 10;
const SELDOM = 500;
const TARGET_P99_MS = 30;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/**
 * Consumer 1 has every other charge. So does developer 1, in pairs, who also has the rare tools. Consumer 2 has none.
 */
const CHARGE = `
  insert into farebox.charges (amount_micros, spent_micros, balance_micros, id, consumer_id, developer,
    ledger, receipt_key, tool)
  select 100, 100 * seq, ${BALANCE} - 100 * seq,
    uuidv7(make_interval(secs => -${DAYS} * 86400.0 * (1 - slot / $1::float8))),
    c.id, case when slot / 2 % 2 = 0 then 1 else 2 + slot % 999 end, c.ledger, 1,
    case when slot % ($1 / ${RARE}) = 0 then 'rare' when slot % ($1 / ${SELDOM}) = 0 then 'seldom'
      else 'search' end
  from (
    select slot, n, row_number() over (partition by n order by slot) as seq
    from (
      select slot, case when slot % 2 = 0 then 1 else 3 + slot % ${CONSUMERS - 3} end as n
      from generate_series(1, $1::int8) slot
    ) drawn
  ) placed join bench.consumers c using (n)
  order by slot
`;

const SETTLE = [
  `update farebox.consumers c set spent_micros = h.micros
   from (select ledger, consumer_id, sum(amount_micros) as micros from farebox.charges group by 1, 2) h
   where c.ledger = h.ledger and c.id = h.consumer_id`,
  'vacuum analyze',
  'checkpoint',
];

const daysAgo = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString();

async function fill({ databaseUrl }: Ledger): Promise<void> {
  for (let month = MONTHS; month >= 0; month -= 1) {
    await ensureChargePartitions(databaseUrl, Date.now() - month * 30 * DAY_MS);
  }
  await withClient(databaseUrl, (client) => client.query(CHARGE, [CHARGES]));
  const database = await createDatabase(databaseUrl, { maxPoolSize: 1, onError: () => {} });
  await rebuildRollups(database);
  await database.end();
  await withClient(databaseUrl, async (client) => {
    for (const statement of SETTLE) await client.query(statement);
  });
}

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
  await fill(ledger);
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
