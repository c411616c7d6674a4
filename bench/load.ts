/** Load over HTTP: wrk where there is one, because it costs the measured machine least, else autocannon. */
import { execFile, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import autocannon from 'autocannon';
import type { BenchStack } from './stack.ts';

const run = promisify(execFile);

export interface Measured {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export const loadGenerator: 'wrk' | 'autocannon' =
  spawnSync('wrk', ['--version'], { stdio: 'ignore' }).error === undefined ? 'wrk' : 'autocannon';

/** Single charges of random consumers, each connection waiting for its answer before the next. */
export async function chargeOverHttp(
  stack: BenchStack,
  connections: number,
  seconds: number,
  seed: number,
): Promise<Measured> {
  return loadGenerator === 'wrk'
    ? withWrk(stack, connections, seconds, seed)
    : withAutocannon(stack, connections, seconds);
}

async function withWrk(
  stack: BenchStack,
  connections: number,
  seconds: number,
  seed: number,
): Promise<Measured> {
  const script = join(import.meta.dirname, 'charge.lua');
  const { stdout } = await run(
    'wrk',
    ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, stack.apiUrl],
    {
      env: {
        PATH: process.env['PATH'],
        KEYS_FILE: stack.keysFile,
        DEVELOPER_KEY: stack.developerKey,
        SEED: String(seed),
      },
    },
  );
  const found = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, number>;
  const { requests = 0, durationUs = 1, refused = 0, p50Us = 0, p99Us = 0 } = found;
  if (refused > 0) throw new Error(`${refused} of ${requests} charges were not made`);
  return {
    perSecond: (requests / durationUs) * 1e6,
    p50Ms: p50Us / 1e3,
    p99Ms: p99Us / 1e3,
  };
}

async function withAutocannon(
  stack: BenchStack,
  connections: number,
  seconds: number,
): Promise<Measured> {
  const keys = (await readFile(stack.keysFile, 'utf8')).split('\n');
  const result = await autocannon({
    url: `${stack.apiUrl}/v1/charges`,
    connections,
    duration: seconds,
    requests: [
      {
        method: 'POST',
        headers: {
          authorization: `Bearer ${stack.developerKey}`,
          'content-type': 'application/json',
        },
        setupRequest: (request) => {
          const apiKey = keys[Math.floor(Math.random() * keys.length)];
          return { ...request, body: JSON.stringify({ apiKey, tool: 'search', amount: 0.0001 }) };
        },
      },
    ],
  });
  if (result.non2xx + result.errors > 0) {
    throw new Error(`${result.non2xx + result.errors} charges were not made`);
  }
  return {
    perSecond: result.requests.average,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  };
}
