/**
 * A process of its own that charges through the client library, CONCURRENCY calls at a time, each next call as soon as
 * the previous one is answered. Prints the measurements as JSON.
 */
import { readFileSync } from 'node:fs';
import { Farebox } from '../client/index.js';
import { latenciesOf } from './latencies.ts';

/** The warm-up, in which code is compiled and connections are opened. All other processes have run for longer. */
const WARM_UP_SECONDS = 2;

const concurrency = Number(process.env['CONCURRENCY']);
const seconds = Number(process.env['SECONDS']);
const keys = readFileSync(process.env['KEYS_FILE'] ?? '', 'utf8').split('\n');
const farebox = new Farebox();

async function chargeFor(durationSeconds: number): Promise<number[]> {
  const latenciesMs: number[] = [];
  const until = performance.now() + durationSeconds * 1e3;
  const loop = async (): Promise<void> => {
    for (let now = performance.now(); now < until;) {
      const apiKey = keys[Math.floor(Math.random() * keys.length)];
      await farebox.charge({ apiKey, tool: 'search', amount: 0.0001 });
      const before = now;
      now = performance.now();
      latenciesMs.push(now - before);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, loop));
  return latenciesMs;
}

const warmUp = await chargeFor(WARM_UP_SECONDS);
const startedAt = performance.now();
const latenciesMs = await chargeFor(seconds);
const tookSeconds = (performance.now() - startedAt) / 1e3;
process.stdout.write(
  JSON.stringify({
    count: warmUp.length + latenciesMs.length,
    perSecond: latenciesMs.length / tookSeconds,
    ...latenciesOf(latenciesMs),
  }),
);
