/**
 * How soon a new spend key works, and how soon a key below a closed budget or a revoked key ends, in each of two API
 * processes: `bin/farebox exec node bench/spend-key-changes.ts [--times 100]`. Fails when a new key took
 * longer than 50 ms at p99, or an ended one a second in any try. It writes nothing.
 */
import { parseArgs } from 'node:util';
import { startTestApiProcesses } from '../test/support/api.ts';
import { closeBudget, makeBudget, makeKey, spend } from '../test/support/budget-requests.ts';
import { call } from '../test/support/http.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../test/support/setup.ts';
import { latenciesOf } from './latencies.ts';

/** Tries that are not counted: code is compiled and connections are opened. */
const WARM_UP = 20;
const WORKS_MS_MAX = 50;
const ENDS_MS_MAX = 1_000;

const { values } = parseArgs({ options: { times: { type: 'string', default: '100' } } });
const TIMES = Number(values.times);

type Kind = 'a new key' | 'a revoked key' | 'a key two levels below a closed budget';
const tookMs = new Map<Kind, number[]>();

function note(kind: Kind, ms: number): void {
  tookMs.set(kind, [...(tookMs.get(kind) ?? []), ms]);
}

function say(kind: Kind, what: string, isMet: (p99Ms: number, maxMs: number) => boolean): void {
  const counted = (tookMs.get(kind) ?? []).slice(WARM_UP * 2);
  const { p50Ms, p99Ms } = latenciesOf(counted);
  const maxMs = Math.max(...counted);
  const [p50, p99, max] = [p50Ms, p99Ms, maxMs].map((ms) => ms.toFixed(1));
  if (!isMet(p99Ms, maxMs)) process.exitCode = 1;
  process.stdout.write(
    `${kind} ${what}, ${counted.length} times: p50 ${p50} ms, p99 ${p99} ms, at most ${max} ms: ` +
      `${isMet(p99Ms, maxMs) ? 'met' : 'NOT MET'}\n`,
  );
}

await mochaGlobalSetup();
try {
  const api = await startTestApiProcesses({ servers: 2 });
  const account = await api.createAccount(1_000);
  const owner = account.consumerKey;
  type Server = (typeof api.servers)[number];

  /** The time of the first charge by a key that this process has not seen. */
  const works = async (server: Server, key: string): Promise<number> => {
    const since = performance.now();
    const { status } = await spend(server, account, key, 0.01);
    if (status !== 201) throw new Error(`a new key was answered ${status}`);
    return performance.now() - since;
  };
  /** The time from the end until the answer to the last charge that was made. */
  const ends = async (server: Server, key: string, since: number): Promise<number> => {
    for (let lastMs = 0; ; lastMs = performance.now() - since) {
      const { status } = await spend(server, account, key, 0.01);
      if (status === 401) return lastMs;
      if (status !== 201) throw new Error(`an ended key was answered ${status}`);
    }
  };
  /** In both processes at once. */
  const measureEnd = async (kind: Kind, key: string, end: () => Promise<unknown>) => {
    for (const server of api.servers) note('a new key', await works(server, key));
    await end();
    const since = performance.now();
    const took = await Promise.all(api.servers.map((server) => ends(server, key, since)));
    for (const ms of took) note(kind, ms);
  };

  for (let n = 0; n < TIMES + WARM_UP; n += 1) {
    const root = await makeBudget(api, owner);
    const middle = await makeBudget(api, owner, { parentId: root.id });
    const leaf = await makeBudget(api, owner, { parentId: middle.id });
    const [revoked, below] = [
      await makeKey(api, owner, root.id),
      await makeKey(api, owner, leaf.id),
    ];
    await measureEnd('a revoked key', revoked.key, () =>
      call(api, 'POST', `/v1/keys/${revoked.id}/revoke`, { key: owner }),
    );
    await measureEnd('a key two levels below a closed budget', below.key, () =>
      closeBudget(api, owner, root.id),
    );
  }
  say('a new key', `works within ${WORKS_MS_MAX} ms at p99`, (p99Ms) => p99Ms <= WORKS_MS_MAX);
  const isOver = (_: number, maxMs: number) => maxMs <= ENDS_MS_MAX;
  say('a revoked key', `makes no charge after ${ENDS_MS_MAX} ms`, isOver);
  say('a key two levels below a closed budget', `makes no charge after ${ENDS_MS_MAX} ms`, isOver);
  await api.stop();
} finally {
  await mochaGlobalTeardown();
}
