/**
 * What traces cost: single charges per second of three groups of API processes, in turns: without traces, with one in a
 * hundred recorded, and with all. The spans go to a receiver on this machine that throws them away.
 * `npm run bench:traces -- [--seconds 5] [--rounds 5] [--connections 128]`
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { createLedger, proveWhole } from './ledger.ts';
import { chargeOverHttp, loadGenerator } from './load.ts';
import type { Measured } from './rounds.ts';
import { startApi, startStack } from './stack.ts';

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
    connections: { type: 'string', default: '128' },
  },
});
const SECONDS = Number(options.seconds);
const ROUNDS = Number(options.rounds);
const CONNECTIONS = Number(options.connections);

const say = (text: string): void => void process.stdout.write(`${text}\n`);

let receivedBytes = 0;
const receiver = createServer((request, response) => {
  request.on('data', (chunk: Buffer) => (receivedBytes += chunk.length));
  request.on('end', () =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}'),
  );
});
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
const endpoint = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;

const GROUPS = {
  'no traces': {},
  'one in a hundred': {
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.01',
  },
  all: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint },
};

function median(measured: readonly Measured[], of: (each: Measured) => number): number {
  return measured.map(of).toSorted((a, b) => a - b)[Math.floor(measured.length / 2)] ?? 0;
}

const stack = await startStack();
try {
  const ledger = await createLedger(stack, 'traces', 1);
  const groups = [];
  for (const [name, env] of Object.entries(GROUPS)) {
    const api = await startApi(stack, ledger.databaseUrl, env);
    groups.push({ name, api, measured: [] as Measured[] });
  }
  const charge = (url: string, seconds: number) =>
    chargeOverHttp({ ...ledger, url }, { connections: CONNECTIONS, seconds, seed: 1 });
  try {
    // Code that is compiled first is slow, and is not measured.
    for (const { api } of groups) await charge(api.url, SECONDS);
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const { api, measured } of groups) measured.push(await charge(api.url, SECONDS));
    }
  } finally {
    for (const { api } of groups) await api.stop();
  }
  say(
    `${CONNECTIONS} connections by ${loadGenerator}, medians of ${ROUNDS} rounds of ${SECONDS} s; load of the machine ` +
      `${loadavg()[0]?.toFixed(1)}; ${(receivedBytes / 1e6).toFixed(0)} MB of spans received.`,
  );
  const base = median(groups[0]?.measured ?? [], ({ perSecond }) => perSecond);
  for (const { name, measured } of groups) {
    const perSecond = median(measured, (each) => each.perSecond);
    const p99Ms = median(measured, (each) => each.p99Ms ?? 0);
    say(
      `${name}: ${perSecond.toFixed(0)} charges/s, ${(perSecond / base).toFixed(3)} of those without; p99 ${p99Ms.toFixed(1)} ms`,
    );
  }
  await proveWhole(ledger);
} finally {
  await stack.stop();
  receiver.close();
}
