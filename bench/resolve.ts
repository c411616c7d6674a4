/**
 * `npm run bench:resolve`: the latency of `POST /resolve` among 100,000 agents, over HTTP, with one API process. The
 * words are invented and as unevenly distributed as real ones: a few in every other agent, most in a handful.
 */
import { cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { asMicros } from '../src/domain/money.ts';
import { createAccounts } from '../src/store/accounts/accounts.ts';
import { AGENTS_MAX, registerAgent } from '../src/store/agents/agents.ts';
import { createDatabase } from '../src/store/database.ts';
import { migrate } from '../src/store/migrations.ts';
import { latenciesOf } from './latencies.ts';
import { startApi, startStack } from './stack.ts';

const { values: options } = parseArgs({
  options: {
    agents: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
  },
});
const AGENTS = Number(options.agents);
const SECONDS = Number(options.seconds);
const REGISTERING = 8;
const WARM_UP = 200;
/** Concurrent callers. Each waits for the answer before its next request. */
const CALLERS = [1, 2, 4];
const TARGET_P99_MS = 50;
const WORDS = 20_000;
/** This share of the words is drawn from `COMMON`. */
const COMMON_SHARE = 0.1;
const COMMON = ['agent', 'assistant', 'data', 'search', 'service', 'smart', 'tool', 'text'];

const say = (text: string) => process.stdout.write(`${text}\n`);

let state = Number(options.seed);
/** From 0 to 1, the same in every run with the same seed. */
function random(): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
  return (state >>> 8) / 0x80_0000;
}

function pick<T>(items: readonly T[]): T {
  return items[Math.floor(random() * items.length)] as T;
}

const CONSONANTS = 'b d f g k l m n p r s t v st tr pl'.split(' ');
const VOWELS = 'a e i o u'.split(' ');

function madeUpWord(): string {
  const syllables = 2 + Math.floor(random() * 3);
  return Array.from({ length: syllables }, () => pick(CONSONANTS) + pick(VOWELS)).join('');
}

const vocabulary = [...new Set(Array.from({ length: WORDS * 2 }, madeUpWord))].slice(0, WORDS);

function word(): string {
  if (random() < COMMON_SHARE) return pick(COMMON);
  return vocabulary[Math.floor(vocabulary.length * random() ** 3)] as string;
}

function words(count: number): string {
  return Array.from({ length: count }, word).join(' ');
}

function madeUpAgent(n: number) {
  return {
    id: `bench-${n}`,
    name: words(2),
    protocol: pick(['mcp', 'a2a', 'http']),
    endpoint: 'https://example.com/',
    description: words(15),
    capabilities: [words(2), words(2)],
    intents: [words(1)],
  };
}

/** One to five words of an agent. A third of the queries have a typo. */
function madeUpQuery(): string {
  const { name, description, capabilities } = pick(asked);
  const known = [name, description, ...capabilities].join(' ').split(' ');
  const chosen = Array.from({ length: 1 + Math.floor(random() * 5) }, () => pick(known));
  const query = chosen.join(' ');
  const at = 1 + Math.floor(random() * (query.length - 1));
  return random() < 1 / 3 ? query.slice(0, at) + query.slice(at + 1) : query;
}

/** Runs this many callers, each of which waits for its answer before it continues, until all work is done. */
async function byCallers(count: number, next: () => (() => Promise<void>) | undefined) {
  const work = async () => {
    for (let step = next(); step; step = next()) await step();
  };
  await Promise.all(Array.from({ length: count }, work));
}

/** Registers all agents with the API's own code, and returns a key for queries. */
async function registerAgents(databaseUrl: string): Promise<string> {
  const database = await createDatabase(databaseUrl, {
    maxPoolSize: REGISTERING,
    onError: () => {},
  });
  try {
    const accounts = Array.from({ length: Math.ceil(AGENTS / AGENTS_MAX) }, (_, n) => ({
      email: `bench-${n}@example.com`,
      balanceMicros: asMicros(0),
    }));
    const settings = { keyPrefix: 'fare', ledgerCount: 16, consentCeilingMicros: undefined };
    const result = await createAccounts(database, accounts, settings);
    if (result.kind !== 'created' || !result.accounts[0]) throw new Error('no account was made');
    const { legacyKey } = result.accounts[0];
    let registered = 0;
    await byCallers(REGISTERING, () => {
      if (registered >= AGENTS) return undefined;
      const { accountId = '' } = result.accounts[Math.floor(registered / AGENTS_MAX)] ?? {};
      const agent = madeUpAgent((registered += 1));
      if (registered % 100 === 0) asked.push(agent);
      return async () => void (await registerAgent(database, accountId, agent));
    });
    return legacyKey;
  } finally {
    await database.end();
  }
}

const asked: ReturnType<typeof madeUpAgent>[] = [];
const stack = await startStack();
try {
  const databaseUrl = await stack.createDatabase('resolve');
  await migrate(databaseUrl);
  const begun = performance.now();
  const key = await registerAgents(databaseUrl);
  const seconds = (performance.now() - begun) / 1000;
  say(
    `${AGENTS} agents registered in ${seconds.toFixed(0)} s; ${cpus().length} cores, seed ${options.seed}.`,
  );
  const api = await startApi(stack, databaseUrl);
  try {
    await run(api.url, key);
  } finally {
    await api.stop();
  }
} finally {
  await stack.stop();
}

async function run(apiUrl: string, key: string): Promise<void> {
  const resolve = async (query: string) => {
    const answer = await fetch(`${apiUrl}/resolve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-key': key },
      body: JSON.stringify({ query, topK: 10 }),
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`answered ${answer.status}: ${text}`);
  };
  for (let n = 0; n < WARM_UP; n += 1) await resolve(madeUpQuery());
  for (const callers of CALLERS) {
    const latenciesMs: number[] = [];
    const deadline = performance.now() + SECONDS * 1000;
    await byCallers(callers, () => {
      if (performance.now() > deadline) return undefined;
      const query = madeUpQuery();
      return async () => {
        const start = performance.now();
        await resolve(query);
        latenciesMs.push(performance.now() - start);
      };
    });
    const { p50Ms, p99Ms } = latenciesOf(latenciesMs);
    const verdict = p99Ms < TARGET_P99_MS ? 'under' : 'NOT UNDER';
    say(
      `${callers} at once: ${(latenciesMs.length / SECONDS).toFixed(0)}/s, p50 ${p50Ms.toFixed(1)} ms, ` +
        `p99 ${p99Ms.toFixed(1)} ms, ${verdict} ${TARGET_P99_MS} ms; ` +
        `load of the machine ${loadavg()[0]?.toFixed(1)}`,
    );
  }
}
