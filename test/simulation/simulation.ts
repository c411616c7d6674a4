/**
 * All of Farebox against a small model: actors that randomly do what clients do, over two API
 * processes that are killed on the way, a worker, Temporal and the payment simulator with webhooks that come
 * twice and out of order. At the end the books agree with the model, to the micro-dollar.
 */
import assert from 'node:assert/strict';
import type { Micros } from '../../src/domain/money.ts';
import { wireId } from '../../src/domain/ids.ts';
import { createAccounts } from '../../src/store/accounts/accounts.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { proveBooks } from '../support/books.ts';
import { call } from '../support/http.ts';
import { control, topUpsOf } from '../support/payments.ts';
import { startApiProcess, startProcesses, type Stack } from '../support/stack.ts';
import { Actor, RARE_STEPS, type World } from './actor.ts';
import { compare } from './comparison.ts';
import { Consumer, dollarsOf, type Developer } from './model.ts';
import { Random } from '../support/random.ts';
import { Service } from './service.ts';

export interface SimulationOptions {
  readonly seed: number;
  /** Steps of all actors together; most are one request, some are a batch or a whole top-up. */
  readonly operations: number;
  /** How many times an API process is killed. */
  readonly kills: number;
  readonly onProgress?: (done: number, counts: ReadonlyMap<string, number>) => void;
}

const ACTORS = 8;
const CONSUMERS_PER_ACTOR = 2;
const DEVELOPERS = 3;
const FIRST_BALANCE_MICROS = 20_000_000 as Micros;
const PRICES = new Map([
  ['translate', 250_000],
  ['embed', 1],
  ['transcribe', 12_345],
]);
/** Most counts of their units cost parts of a micro-dollar, often exactly half of one. */
const CARDS: Developer['cards'] = new Map<string, Readonly<Record<string, number>>>([
  ['complete', { input: 2_500_000, output: 10_500_000, cached: 0 }],
  ['rank', { pairs: 125_001 }],
]);

/** Resolves with how often each thing happened; rejects when the service and the model disagree. */
export async function simulate(options: SimulationOptions): Promise<ReadonlyMap<string, number>> {
  const stack = await startProcesses();
  const { url } = stack.database;
  const database = await createDatabase(url, { maxPoolSize: 4, onError: () => {} });
  const second = await startApiProcess({ env: { ...stack.env, PORT: undefined } });
  const service = new Service([stack.api, second], stack.env);
  try {
    await control(stack.simulator, 'webhooks', { duplicate: 2, shuffle: true });
    const random = new Random(options.seed);
    const actors = await createActors(stack, { service, database }, random);
    await run(options, actors, service, random);
    await compare(service, random, actors);
    await proveBooks(stack.env);
    return service.counts;
  } finally {
    await service.stop();
    await database.end();
    await stack.stop();
  }
}

async function createActors(
  stack: Stack,
  { service, database }: Pick<World, 'service' | 'database'>,
  random: Random,
): Promise<Actor[]> {
  const developers = (await newAccounts(database, 'developer', DEVELOPERS, 0 as Micros)).map(
    ({ developerId, developerKey }): Developer => ({
      developerId: wireId('developer', developerId),
      developerKey,
      prices: PRICES,
      cards: CARDS,
    }),
  ) as [Developer, ...Developer[]];
  for (const { developerKey } of developers) await registerTools(stack, developerKey);
  const accounts = await newAccounts(
    database,
    'consumer',
    ACTORS * CONSUMERS_PER_ACTOR,
    FIRST_BALANCE_MICROS,
  );
  const consumers = accounts.map(
    ({ accountId, consumerId, consumerKey }) =>
      new Consumer({ accountId, consumerKey, consumerId: wireId('consumer', consumerId) }),
  );
  for (const consumer of consumers) {
    const [topUp] = await topUpsOf(stack.api, { consumerKey: consumer.apiKey });
    consumer.credit(topUp?.id ?? '', FIRST_BALANCE_MICROS);
  }
  return Array.from({ length: ACTORS }, (_, index) => {
    const own = consumers.slice(index * CONSUMERS_PER_ACTOR, (index + 1) * CONSUMERS_PER_ACTOR);
    return new Actor(
      `actor ${index}`,
      { service, database, developers },
      own as [Consumer, ...Consumer[]],
      new Random(random.between(0, 2 ** 32 - 1)),
    );
  });
}

async function newAccounts(database: Database, name: string, count: number, balanceMicros: Micros) {
  const result = await createAccounts(
    database,
    Array.from({ length: count }, (_, index) => ({
      email: `${name}-${index}@example.com`,
      balanceMicros,
    })),
    { keyPrefix: 'fare', ledgerCount: 16, consentCeilingMicros: 1_000_000_000_000 as Micros },
  );
  assert.ok(result.kind === 'created');
  return result.accounts;
}

async function registerTools(stack: Stack, developerKey: string): Promise<void> {
  const priced = [...PRICES].map(([name, micros]) => ({ name, price: dollarsOf(micros) }));
  const byUnits = [...CARDS].map(([name, card]) => ({ name, card: dollarsPerUnit(card) }));
  for (const tool of [...priced, ...byUnits]) {
    const body = { ...tool, description: 'A tool of the simulation' };
    const answer = await call(stack.api, 'POST', '/v1/tools', { key: developerKey, body });
    assert.equal(answer.status, 201);
  }
}

function dollarsPerUnit(card: Readonly<Record<string, number>>) {
  return Object.fromEntries(Object.entries(card).map(([unit, picos]) => [unit, picos / 1e12]));
}

/** All actors concurrently, and the one who kills. The first failure ends it. */
async function run(
  { operations, kills, onProgress }: SimulationOptions,
  actors: readonly Actor[],
  service: Service,
  random: Random,
): Promise<void> {
  const seedOfKills = random.between(0, 2 ** 32 - 1);
  const killer = new Random(seedOfKills);
  const marks = Array.from({ length: kills }, (_, index) =>
    Math.floor(((index + killer.next()) / kills) * operations),
  );
  let done = 0;
  let killing = Promise.resolve();
  const failed = new AbortController();
  const act = async (actor: Actor, index: number): Promise<void> => {
    await actor.step(RARE_STEPS[index % RARE_STEPS.length]);
    while (done < operations && !failed.signal.aborted) {
      done += 1;
      onProgress?.(done, service.counts);
      if (done >= (marks[0] ?? Number.POSITIVE_INFINITY)) {
        marks.shift();
        killing = killing.then(() => service.kill(killer));
      }
      await actor.step();
    }
  };
  await Promise.all(
    actors.map((actor, index) => act(actor, index).catch((error: unknown) => failed.abort(error))),
  );
  await killing;
  failed.signal.throwIfAborted();
}
