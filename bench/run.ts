/**
 * `npm run bench`: charges over HTTP beside one-row debits by Postgres alone, on one machine in one run,
 * in turn, three rounds. Only the ratio means anything on another machine.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { arch, cpus, platform, totalmem } from 'node:os';
import { join } from 'node:path';
import { baselineGenerator, debitDirectly } from './baseline.ts';
import { chargeOverHttp, loadGenerator } from './load.ts';
import { startBenchStack, type BenchStack } from './stack.ts';

const ROUNDS = 3;
const WARM_UP_SECONDS = 4;
const SECONDS = 8;
const HTTP_CONNECTIONS = 256;
/** The baseline is given its best of these. */
const BASELINE_CONNECTIONS = [16, 64] as const;
const RESULTS = join(import.meta.dirname, 'results');

interface Round {
  readonly http: number;
  readonly httpP50Ms: number;
  readonly httpP99Ms: number;
  readonly baseline: number;
  readonly aloneP50Ms: number;
}

const say = (text: string) => process.stdout.write(`${text}\n`);

async function measure(stack: BenchStack, seed: number): Promise<Round> {
  const http = await chargeOverHttp(stack, HTTP_CONNECTIONS, SECONDS, seed);
  let baseline = 0;
  for (const connections of BASELINE_CONNECTIONS) {
    baseline = Math.max(baseline, await debitDirectly(stack, connections, SECONDS / 2));
  }
  const alone = await chargeOverHttp(stack, 1, SECONDS / 4, seed);
  return {
    http: http.perSecond,
    httpP50Ms: http.p50Ms,
    httpP99Ms: http.p99Ms,
    baseline,
    aloneP50Ms: alone.p50Ms,
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const seed = Number(process.env['SEED'] ?? Date.now() % 1e6);
say(`Load by ${loadGenerator}, baseline by ${baselineGenerator}, seed ${seed}.`);
const stack = await startBenchStack();
const rounds: Round[] = [];
try {
  await chargeOverHttp(stack, HTTP_CONNECTIONS, WARM_UP_SECONDS, seed);
  for (let round = 1; round <= ROUNDS; round += 1) {
    const measured = await measure(stack, seed + round);
    rounds.push(measured);
    say(
      `round ${round}: ${measured.http.toFixed(0)} charges/s over HTTP (p50 ` +
        `${measured.httpP50Ms.toFixed(1)} ms, p99 ${measured.httpP99Ms.toFixed(1)} ms), ` +
        `${measured.baseline.toFixed(0)} debits/s by Postgres alone, ` +
        `one connection ${measured.aloneP50Ms.toFixed(2)} ms`,
    );
  }
} finally {
  await stack.stop();
}

const result = {
  date: new Date().toISOString(),
  machine: {
    platform: platform(),
    arch: arch(),
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
  },
  versions: { node: process.versions.node, postgres: stack.postgresVersion },
  loadGenerator,
  baselineGenerator,
  connections: { http: HTTP_CONNECTIONS, baseline: BASELINE_CONNECTIONS },
  seed,
  rounds,
  medianRatio: median(rounds.map(({ http, baseline }) => http / baseline)),
};
say(`Charges over HTTP per debit by Postgres alone: ${result.medianRatio.toFixed(2)} (median).`);
await mkdir(RESULTS, { recursive: true });
await writeFile(
  join(RESULTS, `${result.date.slice(0, 10)}.json`),
  `${JSON.stringify(result, null, 2)}\n`,
);
const readme = join(import.meta.dirname, 'README.md');
await writeFile(readme, withTable(await readFile(readme, 'utf8')));

function row(name: string, values: readonly number[], digits: number): string {
  const [middle, min, max] = [median(values), Math.min(...values), Math.max(...values)].map(
    (value) => value.toFixed(digits),
  );
  return `| ${name} | ${middle} | ${min} to ${max} |`;
}

function withTable(text: string): string {
  const lines = [
    `${result.date.slice(0, 10)}, ${result.machine.cores} cores, Node ${result.versions.node}, PostgreSQL ${result.versions.postgres}, ${loadGenerator}, ${baselineGenerator}:`,
    '',
    '| | median | spread |',
    '| --- | --- | --- |',
    row(`charges/s over HTTP, ${HTTP_CONNECTIONS} connections`, pick('http'), 0),
    row('its p50, ms', pick('httpP50Ms'), 1),
    row('its p99, ms', pick('httpP99Ms'), 1),
    row('debits/s by Postgres alone', pick('baseline'), 0),
    row('one connection, p50, ms', pick('aloneP50Ms'), 2),
    `| **ratio** | **${result.medianRatio.toFixed(2)}** | |`,
  ];
  return text.replace(
    /<!-- latest -->[\s\S]*<!-- \/latest -->/,
    `<!-- latest -->\n\n${lines.join('\n')}\n\n<!-- /latest -->`,
  );
}

function pick(name: keyof Round): number[] {
  return rounds.map((round) => round[name]);
}
