/**
 * Load over HTTP. Each connection waits for its answer before it sends the next request. Uses wrk where it is
 * installed, because it costs the measured machine least, otherwise autocannon. Any refusal fails the run.
 */
import { execFile, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import autocannon, { type Request } from 'autocannon';
import type { Effort, Measured } from './rounds.ts';

const run = promisify(execFile);

/** Charges per request to `/v1/charges/batch`. */
export const BATCH = 100;
/** A stalled machine is slow, not broken. */
const TIMEOUT_SECONDS = 20;

const wrkVersion = spawnSync('wrk', ['--version'], { encoding: 'utf8' }).stdout as string | null;
export const loadGenerator = wrkVersion
  ? `wrk ${/^wrk (?:debian\/)?(\S+)/.exec(wrkVersion)?.[1]}`
  : 'autocannon';

export interface ChargedServer {
  readonly url: string;
  readonly developerKey: string;
  /** A file with one consumer key per line. Each charge draws one at random. */
  readonly keysFile: string;
}

interface Load {
  readonly kind: 'charge' | 'batch' | 'hold' | 'read';
  readonly perRequest: number;
  readonly url: string;
  readonly key: string;
  readonly keysFile: string | undefined;
}

/** Single charges. */
export function chargeOverHttp(server: ChargedServer, effort: Effort): Promise<Measured> {
  return generate({ ...server, key: server.developerKey, kind: 'charge', perRequest: 1 }, effort);
}

/** Charges in batches of `BATCH`; latencies are per request. */
export function chargeInBatches(server: ChargedServer, effort: Effort): Promise<Measured> {
  return generate(
    { ...server, key: server.developerKey, kind: 'batch', perRequest: BATCH },
    effort,
  );
}

/** Holds, each captured by a second request. Captures are counted; latencies are per request. */
export function holdOverHttp(server: ChargedServer, effort: Effort): Promise<Measured> {
  return generate({ ...server, key: server.developerKey, kind: 'hold', perRequest: 1 }, effort);
}

export function readOverHttp(url: string, key: string, effort: Effort): Promise<Measured> {
  return generate({ url, key, keysFile: undefined, kind: 'read', perRequest: 1 }, effort);
}

function generate(load: Load, effort: Effort): Promise<Measured> {
  return wrkVersion ? withWrk(load, effort) : withAutocannon(load, effort);
}

async function withWrk(load: Load, { connections, seconds, seed }: Effort): Promise<Measured> {
  const script = join(import.meta.dirname, 'load.lua');
  const options = ['-t1', `-c${connections}`, `-d${seconds}s`, `--timeout=${TIMEOUT_SECONDS}s`];
  const { stdout } = await run('wrk', [...options, '-s', script, load.url], {
    env: {
      PATH: process.env['PATH'],
      KIND: load.kind,
      PER_REQUEST: String(load.perRequest),
      KEY: load.key,
      KEYS_FILE: load.keysFile,
      SEED: String(seed),
    },
  });
  const found = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, number>;
  const { requests = 0, captured = 0, durationUs = 1, refused = 0, p50Us = 0, p99Us = 0 } = found;
  refuseRefusals(load, refused);
  const count = load.kind === 'hold' ? captured : requests * load.perRequest;
  return { count, perSecond: (count / durationUs) * 1e6, p50Ms: p50Us / 1e3, p99Ms: p99Us / 1e3 };
}

async function withAutocannon(load: Load, { connections, seconds }: Effort): Promise<Measured> {
  const { kind, perRequest, url, key } = load;
  const keys = load.keysFile ? (await readFile(load.keysFile, 'utf8')).split('\n') : [];
  const charge = () => {
    const apiKey = keys[Math.floor(Math.random() * keys.length)];
    return { apiKey, tool: 'search', amount: 0.0001 };
  };
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  let notMade = 0;
  let captured = 0;
  const requests: Readonly<Record<Load['kind'], readonly [Request, ...Request[]]>> = {
    read: [{ method: 'GET', headers }],
    hold: [
      {
        method: 'POST',
        path: '/v1/holds',
        headers,
        setupRequest: (request) => ({ ...request, body: JSON.stringify(charge()) }),
        onResponse: (_, body, context) => {
          Object.assign(context, JSON.parse(body));
        },
      },
      {
        method: 'POST',
        headers,
        setupRequest: (request, context) => ({
          ...request,
          path: `/v1/holds/${(context as { id: string }).id}/capture`,
          body: '{}',
        }),
        onResponse: (status) => {
          if (status === 201) captured += 1;
        },
      },
    ],
    charge: [
      {
        method: 'POST',
        path: '/v1/charges',
        headers,
        setupRequest: (request) => ({ ...request, body: JSON.stringify(charge()) }),
      },
    ],
    batch: [
      {
        method: 'POST',
        path: '/v1/charges/batch',
        headers,
        setupRequest: (request) => ({
          ...request,
          body: JSON.stringify({ charges: Array.from({ length: perRequest }, charge) }),
        }),
        onResponse: (_, body) => {
          notMade += perRequest - body.split('"status":201').length + 1;
        },
      },
    ],
  };
  const result = await autocannon({
    url,
    connections,
    duration: seconds,
    timeout: TIMEOUT_SECONDS,
    requests: [...requests[kind]],
  });
  refuseRefusals(load, result.non2xx + result.errors + notMade);
  const count = kind === 'hold' ? captured : result.requests.total * perRequest;
  return {
    count,
    perSecond: kind === 'hold' ? count / result.duration : result.requests.average * perRequest,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  };
}

function refuseRefusals({ kind, url }: Load, refused: number): void {
  if (refused > 0) throw new Error(`${refused} times ${url} did not do a ${kind}`);
}
