/**
 * A charge's p99 while 40 callers with one key ask for the most expensive lists, over 10 million charges, compared to
 * without them. The callers have the key of the consumer, or of the developer, with half of the charges. The
 * charges are of another developer and consumer, one at a time. The API has its default limits. Fails when
 * the ratio is above 2 or a charge is refused: run it on a machine that does nothing else.
 * `npm run bench:list-flood -- [--charges 10000000] [--seconds 20] [--callers 40]`
 */
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { latenciesOf } from './latencies.ts';
import { createLedger, proveWhole, type Ledger } from './ledger.ts';
import { DAYS, daysAgo, fillMonths } from './months.ts';
import { startApi, startStack } from './stack.ts';

const { values: options } = parseArgs({
  options: {
    charges: { type: 'string', default: '10000000' },
    seconds: { type: 'string', default: '20' },
    callers: { type: 'string', default: '40' },
  },
});
const CHARGES = Number(options.charges);
const FOR_MS = Number(options.seconds) * 1_000;
const CALLERS = Number(options.callers);
const RATIO_MAX = 2;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

interface Charged {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly refused: number;
}

async function chargeOneByOne(url: string, ledger: Ledger, forMs: number): Promise<Charged> {
  const headers = {
    authorization: `Bearer ${ledger.developerKeys[5]}`,
    'content-type': 'application/json',
  };
  const body = JSON.stringify({ apiKey: ledger.consumerKeys[7], tool: 'search', amount: 0.000001 });
  const latenciesMs: number[] = [];
  let refused = 0;
  const until = performance.now() + forMs;
  while (performance.now() < until) {
    const start = performance.now();
    const answer = await fetch(`${url}/v1/charges`, { method: 'POST', headers, body });
    await answer.text();
    latenciesMs.push(performance.now() - start);
    if (answer.status !== 201) refused += 1;
  }
  return { ...latenciesOf(latenciesMs), refused };
}

/** Asks from all callers until it is stopped. Returns a function that stops it and counts the answers by status. */
function askFor(urls: readonly string[], key: string): () => Promise<Record<number, number>> {
  const stopping = new AbortController();
  const answers: Record<number, number> = {};
  const callers = Array.from({ length: CALLERS }, async (_, caller) => {
    for (let n = caller; !stopping.signal.aborted; n += 1) {
      const answer = await fetch(urls[n % urls.length] ?? '', {
        headers: { authorization: `Bearer ${key}` },
      });
      await answer.text();
      answers[answer.status] = (answers[answer.status] ?? 0) + 1;
    }
  });
  return async () => {
    stopping.abort();
    await Promise.all(callers);
    return answers;
  };
}

async function compare(
  url: string,
  ledger: Ledger,
  flood: { readonly by: string; readonly key: string; readonly paths: readonly string[] },
): Promise<boolean> {
  const alone = await chargeOneByOne(url, ledger, FOR_MS);
  const stop = askFor(
    flood.paths.map((path) => url + path),
    flood.key,
  );
  await delay(1_000);
  const flooded = await chargeOneByOne(url, ledger, FOR_MS);
  const answers = await stop();
  const ratio = flooded.p99Ms / alone.p99Ms;
  const refused = alone.refused + flooded.refused;
  const isMet = ratio <= RATIO_MAX && refused === 0;
  say(
    `lists by ${flood.by}: p99 ${flooded.p99Ms.toFixed(1)} ms (p50 ${flooded.p50Ms.toFixed(1)}), ` +
      `alone ${alone.p99Ms.toFixed(1)} ms (p50 ${alone.p50Ms.toFixed(1)}), ratio ${ratio.toFixed(2)} ` +
      `(at most ${RATIO_MAX}), ${refused} refused, ${isMet ? 'met' : 'NOT MET'}; ` +
      `answers to the lists ${JSON.stringify(answers)}`,
  );
  return isMet;
}

const stack = await startStack();
try {
  const ledger = await createLedger(stack, 'list_flood', 1);
  await fillMonths(ledger, CHARGES);
  say(`${CHARGES} charges; load of the machine ${loadavg()[0]?.toFixed(1)}.`);
  const api = await startApi(stack, ledger.databaseUrl);
  const month = daysAgo(DAYS / 2).slice(0, 7);
  const range = `from=${daysAgo(20)}&to=${daysAgo(10)}`;
  try {
    // Code that is compiled first is slow, and is not measured.
    await chargeOneByOne(api.url, ledger, Math.min(FOR_MS, 5_000));
    const floods = [
      {
        by: 'a consumer',
        key: ledger.consumerKeys[0] ?? '',
        paths: ['/v1/usage?tool=none', `/v1/usage?${range}`, `/v1/statements/${month}`],
      },
      {
        by: 'a developer',
        key: ledger.developerKey,
        paths: ['/v1/charges?tool=none', '/v1/charges?tool=rare', `/v1/statements/${month}`],
      },
    ];
    for (const flood of floods) {
      if (!(await compare(api.url, ledger, flood))) process.exitCode = 1;
    }
  } finally {
    await api.stop();
  }
  await proveWhole(ledger);
} finally {
  await stack.stop();
}
