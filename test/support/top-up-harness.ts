/**
 * A stack without the API's HTTP around its top-ups: the functions behind its routes, a server that
 * receives the simulator's webhooks, and workers.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { pino } from 'pino';
import { WorkflowNotFoundError } from '@temporalio/client';
import { Type } from 'typebox';
import type { Stripe } from 'stripe';
import { wireId } from '../../src/domain/ids.ts';
import { readConfig } from '../../src/config.ts';
import { asMicros, type Micros } from '../../src/domain/money.ts';
import type { TopUpStatus } from '../../src/domain/top-up.ts';
import { choosePort } from './ports.ts';
import { createStripe } from '../../src/stripe/calls.ts';
import { recordWebhook } from '../../src/stripe/webhook.ts';
import { createAccounts } from '../../src/store/accounts/accounts.ts';
import { setAutoTopUp } from '../../src/store/top-ups/auto-top-ups.ts';
import { creditManually } from '../../src/store/top-ups/credit-top-up.ts';
import { createDatabase, row, sql } from '../../src/store/database.ts';
import { findProcessorCustomer } from '../../src/store/top-ups/processor-customers.ts';
import { getTopUp, listTopUpsOf, type TopUp } from '../../src/store/top-ups/top-ups.ts';
import { createTemporalClient, type TemporalClient } from '../../src/temporal/client.ts';
import { reconcileNow } from '../../src/temporal/reconcile-now.ts';
import { reversalsWorkflowId } from '../../src/temporal/start-reversals.ts';
import { topUpWorkflowId } from '../../src/temporal/start-top-up.ts';
import {
  requestTopUp,
  type InTurn,
  type RequestTopUpDeps,
  type TopUpRequest,
  type TopUpResult,
} from '../../src/top-ups/request-top-up.ts';
import type { TopUpProgress } from '../../workflows/messages.ts';
import { newDraft, post } from './charge-drafts.ts';
import { listenOnLoopback } from './loopback.ts';
import { startSimulator } from './simulators.ts';
import {
  createTestDatabase,
  startWorker,
  startWorkerProcess,
  testEnvironment,
  until,
  type Environment,
  type Server,
  type ServerProcess,
  type TestDatabase,
} from './stack.ts';
import { control, forgetFaults } from './payments.ts';

/** Long enough for 25 top-ups with a slow processor, on a busy machine. */
const RECONCILED_MS_MAX = 300_000;

export type Consumer = TopUpRequest['consumer'];
export type TopUpHarness = Awaited<ReturnType<typeof openTopUpHarness>>;

const booksRow = row(
  Type.Object({
    credited: Type.Integer(),
    movements: Type.Integer(),
    lots: Type.Integer(),
    lotsMicros: Type.Integer(),
  }),
);
const countRow = row(Type.Object({ count: Type.Integer() }));

/** Ignores the error of a workflow that never started. */
function none(error: unknown): undefined {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** Without turns, so that requests meet in the database. */
export const atOnce: InTurn = (write) => write();

const inMicros = (dollars: number) => asMicros(Math.round(dollars * 1_000_000));

/** For tests of failures that outlast a step's attempts: five of them take 1.5 s in place of 15 s. */
export const QUICK_RETRIES: Environment = { STEP_RETRY_MS: '100', TOP_UP_ANSWER_MS: '1000' };

/**
 * Webhooks for which `isLost` returns true are acknowledged and dropped, as if they had never come. Uses a database of
 * its own, unless one is `given`.
 */
export async function openTopUpHarness(
  extra: Environment = {},
  isLost: (webhook: string) => boolean = () => false,
  given?: TestDatabase,
) {
  const testDatabase = given ?? (await createTestDatabase());
  const port = await choosePort();
  const simulator = await startSimulator({ apiPort: port });
  const env: Environment = {
    ...(await testEnvironment(testDatabase)),
    ...simulator.env,
    PORT: String(port),
    ...extra,
  };
  const config = readConfig(env);
  const log = pino({ level: 'silent' });
  const database = await createDatabase(config.databaseUrl, { maxPoolSize: 10, onError: () => {} });
  const temporal = createTemporalClient(config.temporal);
  const stripe = createStripe(config.stripe);
  const { webhookSecrets } = config.stripe;
  const webhooks = { database, stripe, webhookSecrets, isLive: false };
  const server = createServer((request, response) => {
    void buffer(request)
      .then(async (body) => {
        if (isLost(body.toString())) return 200;
        const signature = String(request.headers['stripe-signature']);
        const { kind } = await recordWebhook(webhooks, body, signature);
        return kind === 'stored' ? 200 : 400;
      })
      .catch(() => 503) // the database is away
      .then((status) => response.writeHead(status).end());
  });
  await listenOnLoopback(server, port);
  const deps: RequestTopUpDeps = {
    database,
    temporal,
    log,
    answerMs: config.topUpAnswerMs,
  };
  const workers: Server[] = [];
  let accounts = 0;

  return {
    env,
    config,
    database,
    temporal,
    stripe,
    webhooks,
    simulator,
    /** Stopped at the latest when the harness is closed. */
    async startWorker(more: Environment = {}): Promise<Server> {
      const worker = await startWorker({ env: { ...env, ...more } });
      workers.push(worker);
      return worker;
    },

    /** The same, in a process of its own, which a test may kill. */
    async startWorkerProcess(): Promise<ServerProcess> {
      const worker = await startWorkerProcess({ env });
      workers.push(worker);
      return worker;
    },

    async newConsumer(): Promise<Consumer> {
      accounts += 1;
      const result = await createAccounts(
        database,
        [{ email: `consumer-${accounts}@example.com`, balanceMicros: 0 as Micros }],
        config,
      );
      if (result.kind !== 'created') throw new Error(result.kind);
      const { accountId, consumerId } = result.accounts[0]!;
      const ledger = await database.oneFirst(sql.type(row(Type.Object({ ledger: Type.Integer() })))`
        select ledger from farebox.consumers where id = ${consumerId}
      `);
      return { ledger, consumerId, accountId };
    },

    /** Asks again while a busy Temporal does not say in time that it is up: nothing was requested then. */
    request(
      consumer: Consumer,
      method: 'checkout' | 'direct',
      dollars: number,
      idempotencyKey?: string,
    ): Promise<Exclude<TopUpResult, { kind: 'unavailable' }>> {
      return until(async () => {
        const result = await this.requestOver(temporal, consumer, method, dollars, idempotencyKey);
        return result.kind !== 'unavailable' && result;
      });
    },

    /** The same, once, with a Temporal client of the test's own. */
    requestOver(
      temporalClient: TemporalClient,
      consumer: Consumer,
      method: 'checkout' | 'direct',
      dollars: number,
      idempotencyKey?: string,
    ): Promise<TopUpResult> {
      return requestTopUp(
        { ...deps, temporal: temporalClient },
        { consumer, method, amountMicros: inMicros(dollars), idempotencyKey },
        atOnce,
      );
    },

    /** The same, direct, once it is decided: on a busy machine that takes longer than a request waits. */
    requestDirect(
      consumer: Consumer,
      dollars: number,
      idempotencyKey: string = randomUUID(),
    ): Promise<Exclude<TopUpResult, { kind: 'pending' | 'unavailable' }>> {
      return until(async () => {
        const result = await this.request(consumer, 'direct', dollars, idempotencyKey);
        return result.kind !== 'pending' && result;
      });
    },

    /** A checkout that can be paid; `byLink`: through a top-up link. */
    async checkout(consumer: Consumer, dollars: number, { byLink = false } = {}): Promise<TopUp> {
      // Nothing was requested while Temporal does not answer in time.
      const result = await until(async () => {
        const asked = await requestTopUp(
          deps,
          { consumer, method: 'checkout', amountMicros: inMicros(dollars), byLink },
          atOnce,
        );
        return asked.kind !== 'unavailable' && asked;
      });
      assert.ok(result.kind === 'pending', result.kind);
      return until(async () => {
        const topUp = await getTopUp(database, result.topUp.id);
        return topUp.sessionUrl !== null && topUp;
      });
    },

    /** Submits the form of the hosted page; `save` ticks the box that saves the card. */
    async pay(
      sessionUrl: string | null,
      card = '4242424242424242',
      { save = false, state = 'NY' } = {},
    ): Promise<number> {
      const answer = await fetch(sessionUrl ?? '', {
        method: 'POST',
        body: new URLSearchParams({ card, state, ...(save && { save: 'true' }) }),
        redirect: 'manual',
      });
      return answer.status;
    },

    /** Onto the customer that an earlier top-up created at the processor, in any state. Returns its `pm_...`. */
    async saveCard(consumer: Consumer, card: string): Promise<string> {
      const customer = await findProcessorCustomer(database, consumer.accountId);
      return (await stripe.paymentMethods.attach(card, { customer: customer ?? '' })).id;
    },

    /** Whether the webhook has stored an event about this object. */
    async isReported(objectId: string): Promise<boolean> {
      const count = await database.oneFirst(sql.type(countRow)`
        select count(*) as count from farebox.processor_events where object_id = ${objectId}
      `);
      return count > 0;
    },

    /** Credits $10.00, and lets a charge that leaves less than the threshold top up $20.00. */
    async topUpAutomatically(consumer: Consumer, thresholdDollars = 10): Promise<void> {
      await database.transaction((tx) =>
        creditManually(tx, [{ ...consumer, amountMicros: inMicros(10) }]),
      );
      await setAutoTopUp(database, consumer, {
        thresholdMicros: inMicros(thresholdDollars),
        amountMicros: inMicros(20),
        ceilingMicros: inMicros(1_000),
      });
    },

    /** $1.00. */
    async charge(consumer: Consumer): Promise<void> {
      const [outcome] = await post(database, [newDraft(consumer, 1_000_000)]);
      assert.equal(outcome?.kind, 'posted');
    },

    /** The top-ups that charges requested, oldest first. */
    async automaticTopUps(consumer: Consumer): Promise<readonly TopUp[]> {
      const topUps = await this.topUpsOf(consumer);
      return topUps.filter((topUp) => topUp.automatic).toReversed();
    },

    /** The simulator's controls: `POST /_simulator/<path>`. */
    async control(path: string, body: object = {}): Promise<void> {
      await control(simulator, path, body);
    },

    forgetFaults: () => forgetFaults(simulator),

    /** The faults that no request has used up, oldest first. */
    async faults(): Promise<readonly { readonly times: number }[]> {
      const answer = await control(simulator, 'faults');
      return (answer as { faults: { times: number }[] }).faults;
    },

    /** How many requests the processor is delaying now. */
    async delayed(): Promise<number> {
      return ((await control(simulator, 'faults')) as { delayed: number }).delayed;
    },

    /** Newest first. */
    topUpsOf: ({ consumerId }: Consumer) => listTopUpsOf(database, consumerId, { limit: 100 }),

    /** The payments that the processor took: the books must agree with them. */
    async paymentsOf(topUp: Pick<TopUp, 'id'>): Promise<Stripe.PaymentIntent[]> {
      const answer = await control(simulator, 'payments');
      const { payments } = answer as { payments: Stripe.PaymentIntent[] };
      return payments.filter(
        (payment) => payment.metadata['top_up_id'] === wireId('topUp', topUp.id),
      );
    },

    books(consumer: Consumer) {
      return database.one(sql.type(booksRow)`
        select c.credited_micros as credited,
          (select count(*) from farebox.movements m where m.consumer_id = c.id) as movements,
          (select count(*) from farebox.lots l where l.consumer_id = c.id) as lots,
          (select coalesce(sum(to_micros - from_micros), 0) from farebox.lots l
            where l.consumer_id = c.id) as "lotsMicros"
        from farebox.consumers c where ledger = ${consumer.ledger} and id = ${consumer.consumerId}
      `);
    },

    topUp: (id: string): Promise<TopUp> => getTopUp(database, id),

    async statusBecomes(topUp: Pick<TopUp, 'id'>, status: TopUpStatus): Promise<void> {
      await until(async () => (await getTopUp(database, topUp.id)).status === status);
    },

    /** Compares the top-ups with the processor's books now. */
    reconcile: () => reconcileNow(temporal, AbortSignal.timeout(RECONCILED_MS_MAX)),

    waitingNotices: (): Promise<number> =>
      database.oneFirst(sql.type(countRow)`select count(*) as count from farebox.outbox`),

    workflow: (id: string) => temporal.client.workflow.getHandle(topUpWorkflowId(temporal, id)),

    /** Why its workflow is stuck. Falsy while it is not, has not started, or no worker tells. */
    async stuck({ id }: Pick<TopUp, 'id'>): Promise<TopUpProgress['stuck'] | undefined> {
      const asked = this.workflow(id).query<TopUpProgress>('status');
      return (await asked.catch(() => undefined))?.stuck;
    },

    /** Its refunds and disputes. */
    reversals: (id: string) =>
      temporal.client.workflow.getHandle(reversalsWorkflowId(temporal, id)),

    /** Whether no notice waits, and neither workflow of the top-up runs. */
    async isQuiet(topUp: Pick<TopUp, 'id'>): Promise<boolean> {
      return (await this.waitingNotices()) === 0 && this.hasEnded(topUp);
    },

    /** Whether neither workflow of the top-up runs. */
    async hasEnded({ id }: Pick<TopUp, 'id'>): Promise<boolean> {
      const ids = [topUpWorkflowId(temporal, id), reversalsWorkflowId(temporal, id)];
      const found = await Promise.all(
        ids.map((workflowId) =>
          temporal.client.workflow.getHandle(workflowId).describe().catch(none),
        ),
      );
      return found.every((run) => run?.status.name !== 'RUNNING');
    },

    async close(): Promise<void> {
      await Promise.all(workers.map((worker) => worker.stop()));
      await temporal.close();
      await database.end();
      server.closeAllConnections();
      server.close();
      await simulator.stop();
      await testDatabase.drop();
    },
  };
}
