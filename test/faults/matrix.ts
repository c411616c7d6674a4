/**
 * The crash matrix: each path of a top-up's money, in and out, stopped at each of its steps, while each
 * part of the service is killed or paused. A cell is one such combination. In every cell the money moves exactly
 * once, in bounded time.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { uuidOf } from '../../src/domain/ids.ts';
import { choosePort } from '../support/ports.ts';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { call } from '../support/http.ts';
import { balanceOf, control, pay, topUpsOf } from '../support/payments.ts';
import {
  farebox,
  startApiProcess,
  startSimulatorProcess,
  startWorkerProcess,
  testEnvironment,
  until,
  type Environment,
  type Server,
  type ServerProcess,
} from '../support/stack.ts';
import { startOwnPostgres, startOwnTemporal } from '../support/own-servers.ts';
import { gate, installGates, request, type Step } from './steps.ts';

const BOTH = ['before', 'unanswered'] as const;
const requests = (method: string, path: string) => BOTH.map((at) => request(at, method, path));

/** The steps of each path, in order. */
const STEPS = {
  checkout: [
    gate('the request is written down'),
    gate('the workflow takes it up'),
    ...requests('POST', '/v1/customers'),
    gate('the customer is noted'),
    ...requests('POST', '/v1/checkout/sessions'),
    gate('the session is noted'),
    ...requests('POST', '/pay/'),
    gate('the report is kept'),
    gate('the report is handed over'),
    ...requests('GET', '/v1/checkout/sessions/'),
    gate('the payment is noted'),
    gate('the credit is booked'),
    gate('the status is written'),
    gate('the credit is committed'),
  ],
  direct: [
    gate('the request is written down'),
    gate('the workflow takes it up'),
    ...requests('POST', '/v1/customers'),
    gate('the customer is noted'),
    ...requests('POST', '/v1/payment_methods/'),
    ...requests('POST', '/v1/payment_intents'),
    gate('the payment is noted'),
    ...requests('POST', '/v1/payment_intents/'),
    gate('the credit is booked'),
    gate('the status is written'),
    gate('the credit is committed'),
  ],
  refund: [
    gate('the reversal is written down'),
    gate('the lots are cut'),
    ...requests('GET', '/v1/refunds'),
    ...requests('POST', '/v1/refunds'),
    gate('the report is handed over'),
    gate('the reversal is noted'),
  ],
  dispute: [
    gate('the report is kept'),
    gate('the report is handed over'),
    ...requests('GET', '/v1/disputes'),
    gate('the reversal is written down'),
    gate('the status is written'),
  ],
} as const satisfies Readonly<Record<string, readonly Step[]>>;

const VICTIMS = ['the API', 'the worker', 'Temporal', 'Postgres', 'the simulator'] as const;
type Victim = (typeof VICTIMS)[number];

type Way = keyof typeof STEPS;

export interface Cell {
  readonly way: Way;
  readonly step: Step;
  readonly victim: Victim;
  /** SIGSTOP is followed by SIGCONT. */
  readonly signal: 'SIGKILL' | 'SIGSTOP';
}

/** Every step with every victim killed, and with one of them, in turn, paused. */
export function allCells(): readonly Cell[] {
  return (Object.keys(STEPS) as Way[]).flatMap((way) =>
    STEPS[way].flatMap((step, index) => [
      ...VICTIMS.map((victim) => ({ way, step, victim, signal: 'SIGKILL' as const })),
      {
        way,
        step,
        victim: VICTIMS[index % VICTIMS.length] ?? VICTIMS[0],
        signal: 'SIGSTOP' as const,
      },
    ]),
  );
}

export function nameOf({ way, step, victim, signal }: Cell): string {
  const what = signal === 'SIGKILL' ? 'is killed' : 'stands still';
  return `${way}: ${victim} ${what} when ${step.name}`;
}

const DOLLARS = 25;
/** Longer than a step may be silent, so that it runs a second time during the first one's pause. */
const STANDSTILL_MS = 7_000;
/** A restart, a missed heartbeat, and a step that failed once and waits for its retry. */
const RECOVERY_MS_MAX = 180_000;
const RETRY_MS = 100;

export interface Ground {
  /** How long after the fault the money had moved. Throws when anything is wrong. */
  run(cell: Cell): Promise<number>;
  close(): Promise<void>;
}

interface Part {
  kill(signal: NodeJS.Signals): void;
  /** After a kill: starts the part again, with its data, on the same port. */
  restart(): Promise<void>;
}

const ours = (server: () => ServerProcess, restart: () => Promise<void>): Part => ({
  kill: (signal) => server().kill(signal),
  restart: async () => {
    await server().exited;
    await restart();
  },
});

/** A complete service of its own, whose parts all come back. */
export async function openGround(): Promise<Ground> {
  const postgres = await startOwnPostgres();
  await installGates(postgres.url);
  const temporal = await startOwnTemporal();
  const apiPort = await choosePort();
  let simulator = await startSimulatorProcess({ apiPort });
  const env: Environment = {
    ...(await testEnvironment(postgres)),
    ...simulator.env,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: 'default',
    PORT: String(apiPort),
    // Webhooks lead to credits; the unprompted question is late, but comes.
    FIRST_ASK_MS: '15000',
  };
  let api = await startApiProcess({ env });
  let worker = await startWorkerProcess({ env });
  const parts: Readonly<Record<Victim, Part>> = {
    'the API': ours(
      () => api,
      async () => void (api = await startApiProcess({ env })),
    ),
    'the worker': ours(
      () => worker,
      async () => void (worker = await startWorkerProcess({ env })),
    ),
    'the simulator': ours(
      () => simulator,
      async () => void (simulator = await startSimulatorProcess({ apiPort, earlier: simulator })),
    ),
    Temporal: temporal,
    Postgres: postgres,
  };

  async function run({ way, step, victim, signal }: Cell): Promise<number> {
    const account = await createAccount(env, 0);
    const isReversed = way === 'refund' || way === 'dispute';
    const before = isReversed ? await direct(api, account) : undefined;
    // Or the report of the payment could be what reaches the step, before anything is reversed.
    if (before !== undefined) await settled(before);
    const held = await step.hold({ databaseUrl: postgres.url, simulator });
    const moved = before === undefined ? topUp(way, account) : reverse(way, before);
    moved.catch(() => {}); // awaited below
    await Promise.race([held.reached(), moved.then(() => held.reached())]);
    parts[victim].kill(signal);
    await held.open();
    if (signal === 'SIGKILL') await parts[victim].restart();
    else {
      await delay(STANDSTILL_MS);
      parts[victim].kill('SIGCONT');
    }
    const overMs = Date.now();
    const topUpId = await moved;
    const dollars = isReversed ? 0 : DOLLARS;
    await until(async () => (await balance(account)) === dollars, { timeoutMs: RECOVERY_MS_MAX });
    const statuses = { checkout: 'completed', direct: 'completed', refund: 'refunded' };
    const status = way === 'dispute' ? 'disputed' : statuses[way];
    await until(async () => (await statusOf(account)) === status, { timeoutMs: RECOVERY_MS_MAX });
    await settled(topUpId);
    const tookMs = Date.now() - overMs;
    const { amount_refunded, disputed } = await onlyPaymentOf(topUpId);
    assert.equal(amount_refunded, way === 'refund' ? DOLLARS * 100 : 0);
    assert.equal(disputed, way === 'dispute');
    assert.equal(await movementsOf(topUpId), way === 'refund' ? 2 : 1);
    // Not the schema, which contains the gates.
    await proveBooks(env, {
      only: [
        'balances',
        'top-ups',
        'delivery',
        'holds',
        'charges',
        'earnings',
        'temporal',
        'processor',
      ],
    });
    return tookMs;
  }

  const topUp = (way: Way, account: TestAccount) =>
    way === 'checkout' ? checkout(api, account) : direct(api, account);

  /** An operator who refunds, or a bank that disputes; each asks until it is certain of the result. */
  async function reverse(way: Way, topUpId: string): Promise<string> {
    const { payment_intent } = await onlyPaymentOf(topUpId);
    await until(
      async () => {
        if (way === 'dispute') {
          await control(simulator, 'disputes', { payment_intent }).catch(() => {});
          return (await onlyPaymentOf(topUpId).catch(() => undefined))?.disputed;
        }
        return farebox(['refund', topUpId], { env }).catch((error: { stderr?: string }) =>
          /is refunded/.test(error.stderr ?? ''),
        );
      },
      { timeoutMs: RECOVERY_MS_MAX },
    );
    return topUpId;
  }

  const statusOf = async (account: TestAccount) =>
    (await topUpsOf(api, account).catch(() => []))[0]?.status;

  /** Nothing is left to do about it, and no event to come. */
  async function settled(topUpId: string): Promise<void> {
    const query = `
      select (select count(*) from farebox.reversals where status = 'requested' and top_up_id = $1)
        + (select count(*) from farebox.outbox where topic <> 'auto_top_up') as left`;
    await until(
      async () => {
        const { rows } = await inSql(query, [uuidOf('topUp', topUpId)]);
        return Number(rows[0]?.['left']) === 0;
      },
      { timeoutMs: RECOVERY_MS_MAX },
    );
  }

  const balance = (account: TestAccount) => balanceOf(api, account).catch(() => undefined);

  async function onlyPaymentOf(topUpId: string): Promise<Payment> {
    const { payments } = (await control(simulator, 'payments')) as { payments: Payment[] };
    const [payment, ...more] = payments.filter(({ metadata }) => metadata['top_up_id'] === topUpId);
    assert.ok(payment && more.length === 0, 'there is one payment');
    return payment;
  }

  async function movementsOf(topUpId: string): Promise<number> {
    const query = 'select from farebox.movements where top_up_id = $1';
    return (await inSql(query, [uuidOf('topUp', topUpId)])).rows.length;
  }

  async function inSql(query: string, values: readonly unknown[]) {
    const sql = new Client({ connectionString: postgres.url });
    await sql.connect();
    try {
      return await sql.query<Record<string, unknown>>(query, [...values]);
    } finally {
      await sql.end();
    }
  }

  return {
    run,
    close: async () => {
      await Promise.all([api.stop(), worker.stop(), simulator.stop()]);
      await temporal.remove();
      await postgres.remove();
    },
  };
}

interface Payment {
  readonly payment_intent: string;
  readonly amount_refunded: number;
  readonly disputed: boolean;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A consumer who wants to top up once, and asks with one key until the outcome is known. */
async function direct(api: Server, { consumerKey }: TestAccount): Promise<string> {
  const answer = await persistently(api, '/v1/top-up', consumerKey, (status) => status === 201);
  return answer.topUpId;
}

async function checkout(api: Server, { consumerKey }: TestAccount): Promise<string> {
  const path = '/v1/checkout';
  const answer = await persistently(api, path, consumerKey, (_, body) => Boolean(body.sessionUrl));
  const { topUpId, sessionUrl } = answer;
  await until(() => pay(sessionUrl ?? '').catch(() => false), { timeoutMs: RECOVERY_MS_MAX });
  return topUpId;
}

interface Answered {
  readonly topUpId: string;
  readonly sessionUrl?: string | null;
}

async function persistently(
  { url }: Server,
  path: string,
  key: string,
  isDone: (status: number, body: Answered) => boolean,
): Promise<Answered> {
  return until(
    async () => {
      const request = call({ url }, 'POST', path, {
        key,
        headers: { 'idempotency-key': 'once' },
        body: { amount: DOLLARS },
      });
      const answer = await request.catch(() => undefined);
      const body = answer?.body as Answered | undefined;
      assert.ok(
        !answer || [200, 201, 202, 409, 500, 503].includes(answer.status),
        JSON.stringify(body),
      );
      return body && isDone(answer?.status ?? 0, body) && body;
    },
    { timeoutMs: RECOVERY_MS_MAX, intervalMs: RETRY_MS },
  );
}
