/**
 * Budgets and their usage over millions of charges by 1,000 spend keys, compared with the same developer's
 * earnings, and the bytes of a charge by a spend key. The tree has a root and 100 budgets below it; its keys
 * have half of the charges. Each read is compared with one of earnings that answers about as many rows. Fails
 * when the median of a read is above one and a half of the other, when a p99 is above 30 ms, the target of
 * all reads, or when a charge has more than 300 bytes: run it on a machine that does nothing else.
 * `npm run bench:budgets -- [--charges 10000000] [--requests 300]`
 */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { wireId } from '../src/domain/ids.ts';
import { measureBytes } from './bytes.ts';
import { latenciesOf } from './latencies.ts';
import { createLedger, proveWhole, type Ledger } from './ledger.ts';
import { daysAgo, fillMonths } from './months.ts';
import { startApi, startStack, withClient } from './stack.ts';

const { values: options } = parseArgs({
  options: {
    charges: { type: 'string', default: '10000000' },
    requests: { type: 'string', default: '300' },
  },
});
const CHARGES = Number(options.charges);
const REQUESTS = Number(options.requests);
const TARGET_P99_MS = 30;
/**
 * The most that a read may take, relative to the median of the read of earnings that it is compared with, in
 * the same run.
 */
const TARGET_RATIO = 1.5;
const TARGET_BYTES = 300;
const KEYS = 1_000;
const BUDGETS = 101;

const TREE = [
  `insert into farebox.budgets (ledger, consumer_id, number)
   select c.ledger, c.id, b from bench.consumers c cross join generate_series(1, ${BUDGETS}) b where c.n = 1`,
  `insert into farebox.budget_details (id, ledger, consumer_id, number, path, name)
   select uuidv7(), ledger, consumer_id, number, case number when 1 then '{1}' else array[1, number] end, 'bench'
   from farebox.budgets`,
  `insert into farebox.spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four)
   select uuidv7(), sha256(uuid_send(uuidv7())), a.id, c.ledger, c.id, k, 2 + k % ${BUDGETS - 1},
     array[1, 2 + k % ${BUDGETS - 1}], 'mark'
   from bench.consumers c join farebox.accounts a on a.consumer_id = c.id cross join generate_series(1, ${KEYS}) k
   where c.n = 1`,
];
/** After the charges. */
const USED = `
  update farebox.budgets b set used_micros = s.micros
  from (
    select k.ledger, k.consumer_id, n.number, sum(c.amount_micros) as micros
    from farebox.charges c
    join farebox.spend_keys k on k.ledger = c.ledger and k.consumer_id = c.consumer_id
      and k.number = substr(c.origin, 1, 4)::int4
    cross join lateral unnest(k.path) n (number)
    where c.origin <> '' group by 1, 2, 3
  ) s where (b.ledger, b.consumer_id, b.number) = (s.ledger, s.consumer_id, s.number)`;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

function judge(text: string, isMet: boolean): void {
  if (!isMet) process.exitCode = 1;
  say(`${text}: ${isMet ? 'met' : 'NOT MET'}`);
}

async function fill(ledger: Ledger): Promise<string> {
  const { databaseUrl } = ledger;
  await withClient(databaseUrl, async (client) => {
    for (const statement of TREE) await client.query(statement);
  });
  await fillMonths(ledger, CHARGES, KEYS);
  return withClient(databaseUrl, async (client) => {
    await client.query(USED);
    await client.query('vacuum analyze');
    const { rows } = await client.query('select id from farebox.budget_details where number = 1');
    return wireId('budget', (rows as { id: string }[])[0]?.id ?? '');
  });
}

interface Read {
  readonly name: string;
  readonly url: string;
  readonly key: string;
  /** The read that it has to be as quick as; absent for these reads themselves. */
  readonly like?: string;
}

async function readOnce({ url, key }: Read): Promise<number> {
  const start = performance.now();
  const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}: ${text}`);
  return performance.now() - start;
}

/** In turn, so that other work on the machine slows all of them equally. */
async function measure(reads: readonly Read[]): Promise<void> {
  const latenciesMs = reads.map((): number[] => []);
  for (let n = 0; n < REQUESTS + 20; n += 1) {
    for (const [index, read] of reads.entries()) {
      const tookMs = await readOnce(read);
      if (n >= 20) latenciesMs[index]?.push(tookMs);
    }
  }
  const p50Of = (name: string | undefined): number => {
    const index = reads.findIndex((read) => read.name === name);
    return latenciesOf(latenciesMs[index] ?? []).p50Ms;
  };
  for (const [index, { name, like }] of reads.entries()) {
    const { p50Ms, p99Ms } = latenciesOf(latenciesMs[index] ?? []);
    const ratio = p50Ms / p50Of(like ?? name);
    judge(
      `${name}: p50 ${p50Ms.toFixed(1)} ms, ${like ? `${ratio.toFixed(2)} of ${like} (target ${TARGET_RATIO}), ` : ''}` +
        `p99 ${p99Ms.toFixed(1)} ms (target ${TARGET_P99_MS})`,
      ratio <= TARGET_RATIO && p99Ms < TARGET_P99_MS,
    );
  }
}

const stack = await startStack();
try {
  const ledger = await createLedger(stack, 'budgets', 1);
  const rootId = await fill(ledger);
  say(`${CHARGES} charges; load of the machine ${loadavg()[0]?.toFixed(1)}.`);
  // One account asks for everything, as often as it is answered.
  const api = await startApi(stack, ledger.databaseUrl, { READS_PER_SECOND: '100000' });
  const { developerKey, consumerKeys } = ledger;
  const [key = ''] = consumerKeys;
  const usage = `${api.url}/v1/budgets/${rootId}/usage`;
  try {
    const earnings = (days: number, interval: string) =>
      `${api.url}/v1/earnings?from=${daysAgoUtc(days)}&interval=${interval}`;
    const week = `from=${daysAgoUtc(7)}`;
    await measure([
      { name: 'earnings', url: `${api.url}/v1/earnings`, key: developerKey },
      { name: 'earnings of 50 hours', url: earnings(2, 'hour'), key: developerKey },
      { name: 'earnings of 100 hours', url: earnings(4, 'hour'), key: developerKey },
      { name: 'earnings of 31 days', url: earnings(30, 'day'), key: developerKey },
      { name: 'the root budget', url: `${api.url}/v1/budgets/${rootId}`, key, like: 'earnings' },
      { name: 'usage by tool', url: `${usage}?by=tool`, key, like: 'earnings' },
      { name: 'usage by day', url: `${usage}?by=day`, key, like: 'earnings of 31 days' },
      { name: 'usage by key', url: `${usage}?by=key`, key, like: 'earnings of 50 hours' },
      {
        name: 'usage by developer',
        url: `${usage}?by=developer`,
        key,
        like: 'earnings of 50 hours',
      },
      { name: '50 budgets', url: `${api.url}/v1/budgets`, key, like: 'earnings of 50 hours' },
      {
        name: '100 budgets',
        url: `${api.url}/v1/budgets?limit=100`,
        key,
        like: 'earnings of 100 hours',
      },
      {
        name: 'usage by key, the last week',
        url: `${usage}?by=key&${week}`,
        key,
        like: 'earnings of 50 hours',
      },
      {
        name: 'usage by day, the last week',
        url: `${usage}?by=day&${week}`,
        key,
        like: 'earnings',
      },
    ]);
  } finally {
    await api.stop();
  }
  await proveWhole(ledger);
  const { bytesPerCharge } = await measureBytes(stack, 1, 'spend_keys');
  judge(
    `${bytesPerCharge.toFixed(0)} bytes a charge by a spend key (target ${TARGET_BYTES})`,
    bytesPerCharge <= TARGET_BYTES,
  );
} finally {
  await stack.stop();
}

/** Midnight of that day. */
function daysAgoUtc(days: number): string {
  return `${daysAgo(days).slice(0, 10)}T00:00:00Z`;
}
