/**
 * A complete site whose lines between API and Postgres, worker and Temporal, worker and processor can be damaged, under
 * uninterrupted charges. Each trial of a fault shows what callers saw, and how soon charges and top-ups worked again.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { choosePort } from '../support/ports.ts';
import { CheckoutReply } from '../../src/schemas/top-ups.ts';
import { createTestAccount, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { startFaultyLine, type FaultyLine, type LineFault } from '../support/faulty-line.ts';
import { bodyOf, call } from '../support/http.ts';
import { pay, type OpenCheckout } from '../support/payments.ts';
import { Random } from '../support/random.ts';
import { startSimulator } from '../support/simulators.ts';
import {
  createTestDatabase,
  startApiProcess,
  startWorkerProcess,
  testEnvironment,
  until,
  type Environment,
  type Server,
  type ServerProcess,
} from '../support/stack.ts';
import { PersistentCharges } from './persistent-charges.ts';

const CLIENTS = 10;
const CHARGE_DOLLARS = 0.001;
const CHECKOUT_DOLLARS = 5;
/** A step that failed often is tried again after a pause that has grown. */
const CAUGHT_MS_MAX = 180_000;
/** What a busy machine may do to a charge by itself; its key resolves it. */
const BUSY = ['503', 'idempotency_key_in_use', '201 replayed'];

const LINES = ['API and Postgres', 'worker and Temporal', 'worker and processor'] as const;
export type LineName = (typeof LINES)[number];

export interface Trial {
  readonly name: string;
  /** Damages something; resolves with what ends the damage. */
  readonly begin: (site: LinedSite) => Promise<() => Promise<void> | void> | (() => void);
  readonly lastsMs: number;
  /** Everything that a caller may see while it lasts, and no more. */
  readonly seen: readonly string[];
}

export interface TrialResult {
  readonly name: string;
  /** How often each answer came: its status and, for errors, its code. */
  readonly seen: Readonly<Record<string, number>>;
  /** From the end of the fault until every client had made a charge. */
  readonly chargesMs: number;
  /** From the end of the fault until a top-up requested then was credited. */
  readonly topUpMs: number;
  /** The same for a checkout that was paid during the fault. */
  readonly caughtMs: number;
}

export interface LinedSite {
  readonly lines: Readonly<Record<LineName, FaultyLine>>;
  readonly api: ServerProcess;
  readonly worker: ServerProcess;
  /** Resolves when everything works again as soon as it has to; throws otherwise. */
  run(trial: Trial): Promise<TrialResult>;
  /** With Temporal and the processor. */
  proveBooks(): Promise<void>;
  close(): Promise<void>;
}

/**
 * `env` is for API and worker; without `databaseUrl` it has a database on the run's server. `recoveryMsMax`: how soon
 * charges and top-ups have to work again after a trial. `pauseMs` is the pause of each client between two charges. A
 * trial is made up to `trialsMax` times, while charges end as they do on a busy machine: a fault ends them each time.
 */
export async function openLinedSite({
  seed,
  recoveryMsMax,
  pauseMs = 0,
  trialsMax = 1,
  env = {},
  databaseUrl: given,
}: {
  seed: number;
  recoveryMsMax: number;
  pauseMs?: number | undefined;
  trialsMax?: number | undefined;
  env?: Environment;
  databaseUrl?: string;
}): Promise<LinedSite> {
  const random = new Random(seed);
  const database = given === undefined ? await createTestDatabase() : undefined;
  const databaseUrl = database?.url ?? given ?? '';
  const apiPort = await choosePort();
  const simulator = await startSimulator({ apiPort });
  const common: Environment = {
    ...(await testEnvironment({ url: databaseUrl })),
    ...simulator.env,
    STEP_RETRY_MS: '200',
    FIRST_ASK_MS: '2000',
    ...env,
  };
  const lineTo = ({ hostname, port }: URL) =>
    startFaultyLine({ host: hostname, port: Number(port) }, () => random.next());
  const postgres = new URL(databaseUrl);
  const lines = {
    'API and Postgres': await lineTo(postgres),
    'worker and Temporal': await lineTo(new URL(`tcp://${common['TEMPORAL_ADDRESS']}`)),
    'worker and processor': await lineTo(new URL(simulator.url)),
  };
  postgres.port = String(lines['API and Postgres'].port);
  const [api, worker] = await Promise.all([
    startApiProcess({
      env: { ...common, PORT: String(apiPort), DATABASE_URL: postgres.href },
    }),
    startWorkerProcess({
      env: {
        ...common,
        TEMPORAL_ADDRESS: `127.0.0.1:${lines['worker and Temporal'].port}`,
        STRIPE_API_BASE: `http://127.0.0.1:${lines['worker and processor'].port}`,
      },
    }),
  ]);
  const account = await createTestAccount(databaseUrl, 100_000);
  // Its customer exists from here on, so every later top-up takes the same steps.
  await topUp(api, account);
  const site: LinedSite = {
    lines,
    api,
    worker,
    run: async (trial) => {
      for (let n = 1; ; n += 1) {
        const result = await run(site, account, trial, { recoveryMsMax, pauseMs });
        const expected = ['201', ...trial.seen];
        const others = Object.keys(result.seen).filter((outcome) => !expected.includes(outcome));
        if (others.length === 0) return result;
        const mayBeBusy = others.every((outcome) => BUSY.includes(outcome));
        if (!mayBeBusy || n === trialsMax)
          assert.fail(`${trial.name}: ${JSON.stringify(result.seen)}`);
      }
    },
    proveBooks: () => proveBooks({ ...common, BASE_URL: api.url }),
    close: async () => {
      await Promise.all([api.stop(), worker.stop()]);
      for (const line of Object.values(lines)) await line.stop();
      await simulator.stop();
      await database?.drop();
    },
  };
  return site;
}

export function lineTrial(
  line: LineName,
  fault: LineFault | 'forgotten',
  name: string,
  lastsMs: number,
  expected: Pick<Trial, 'seen'>,
): Trial {
  return {
    name: `${line}: ${name}`,
    lastsMs,
    ...expected,
    begin: ({ lines }) => {
      if (fault === 'forgotten') lines[line].forget();
      else lines[line].damage(fault);
      return () => lines[line].mend();
    },
  };
}

async function run(
  site: LinedSite,
  account: TestAccount,
  trial: Trial,
  { recoveryMsMax, pauseMs }: { readonly recoveryMsMax: number; readonly pauseMs: number },
): Promise<TrialResult> {
  const { api } = site;
  const caught = await openCheckout(api, account);
  const charges = new PersistentCharges([api], account.developerKey);
  const clients = Array.from({ length: CLIENTS }, () =>
    charges.makeUntilStopped(account, CHARGE_DOLLARS, pauseMs),
  );
  try {
    await until(() => charges.made.size > CLIENTS);
    const end = await trial.begin(site);
    assert.ok(await pay(caught.sessionUrl));
    await delay(trial.lastsMs);
    await end();
  } catch (error) {
    charges.stop();
    throw error;
  }
  const endedMs = performance.now();
  const sinceEnd = async (work: Promise<unknown>) => {
    await work;
    return Math.round(performance.now() - endedMs);
  };
  const before = charges.made.size;
  const [chargesMs, topUpMs, caughtMs] = await Promise.all([
    sinceEnd(until(() => charges.made.size >= before + 2 * CLIENTS)),
    sinceEnd(topUp(api, account)),
    sinceEnd(credited(api, account, caught)),
  ]);
  charges.stop();
  await Promise.all(clients);
  assert.deepEqual(charges.violations, []);
  const seen = Object.fromEntries(charges.outcomes);
  for (const tookMs of [chargesMs, topUpMs]) {
    assert.ok(tookMs <= recoveryMsMax, `${trial.name}: back after ${tookMs} ms`);
  }
  return { name: trial.name, seen, chargesMs, topUpMs, caughtMs };
}

/** The whole way: a checkout is opened, paid and credited. */
async function topUp(api: Server, account: TestAccount): Promise<void> {
  const checkout = await openCheckout(api, account);
  assert.ok(await pay(checkout.sessionUrl));
  await credited(api, account, checkout);
}

/** Repeats the request, with its key, until it is answered with the page's address. */
async function openCheckout(api: Server, { consumerKey }: TestAccount): Promise<OpenCheckout> {
  const headers = { 'idempotency-key': randomUUID() };
  const body = { amount: CHECKOUT_DOLLARS };
  const answer = await until(async () => {
    const now = await call(api, 'POST', '/v1/checkout', { key: consumerKey, headers, body });
    return now.status === 201 && now;
  });
  const { topUpId, sessionUrl } = bodyOf(answer, 201, CheckoutReply);
  return { topUpId, sessionUrl: sessionUrl ?? assert.fail() };
}

/** Waits until the top-up is completed. Answers that name an outage are waited out. */
async function credited(
  api: Server,
  { consumerKey: key }: TestAccount,
  { topUpId }: OpenCheckout,
): Promise<void> {
  await until(
    async () => {
      const { body } = await call(api, 'GET', `/v1/top-up/${topUpId}`, { key });
      return (body as { status?: string }).status === 'completed';
    },
    { timeoutMs: CAUGHT_MS_MAX },
  );
}
