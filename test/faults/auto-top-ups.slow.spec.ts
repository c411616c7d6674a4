/** A charge requests an automatic top-up, and the worker or Temporal dies: the top-up still happens, once. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import type { Stripe } from 'stripe';
import { readStripeConfig } from '../../src/config.ts';
import { createStripe } from '../../src/stripe/calls.ts';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { call } from '../support/http.ts';
import { balanceOf, control, topUpsOf } from '../support/payments.ts';
import {
  farebox,
  startStackAndWorkerProcess,
  startWorkerProcess,
  until,
  type Server,
  type ServerProcess,
  type Stack,
} from '../support/stack.ts';
import { holdAccount, holdConsumer } from '../support/row-locks.ts';
import { startOwnTemporal } from '../support/own-servers.ts';

describe('an automatic top-up and the death of', () => {
  let temporal: Awaited<ReturnType<typeof startOwnTemporal>>;
  let stack: Stack<Server, ServerProcess>;
  let worker: ServerProcess;
  let account: TestAccount;
  let stripe: Stripe;
  let sql: Client;

  before(async () => {
    temporal = await startOwnTemporal();
    stack = await startStackAndWorkerProcess({
      env: {
        TEMPORAL_ADDRESS: temporal.address,
        TEMPORAL_NAMESPACE: 'default',
        RELAY_LEASE_MS: '3000',
      },
    });
    worker = stack.worker;
    stripe = createStripe(readStripeConfig(stack.env));
    sql = new Client({ connectionString: stack.database.url });
    await sql.connect();
  });
  beforeEach(newAccount);
  afterEach(() => proveBooks(stack.env));
  after(async () => {
    await sql?.end();
    await worker?.stop();
    await stack?.stop();
    await temporal?.remove();
  });

  async function newAccount(): Promise<void> {
    account = await createAccount(stack.env, 10);
    const settings = ['--threshold', '10', '--amount', '20', '--ceiling', '100'];
    await farebox(['account', 'auto-top-up', account.consumerId, ...settings], stack);
  }

  async function charge(): Promise<void> {
    const { status } = await call(stack.api, 'POST', '/v1/charges', {
      key: account.developerKey,
      body: { apiKey: account.consumerKey, tool: 'search', amount: 1 },
    });
    assert.equal(status, 201);
  }

  async function killWorker(): Promise<void> {
    worker.kill('SIGKILL');
    await worker.exited;
  }

  const automatic = async () =>
    (await topUpsOf(stack.api, account)).filter((topUp) => topUp.automatic);

  /** After any kill: $9.00 were left, and $20.00 came, in one payment. */
  async function comesOnce(): Promise<void> {
    await until(async () => (await balanceOf(stack.api, account)) === 29);
    await until(async () => {
      const { rows } = await sql.query<{ count: string }>('select count(*) from farebox.outbox');
      return rows[0]?.count === '0';
    });
    const topUps = await automatic();
    assert.deepEqual(
      topUps.map(({ status }) => status),
      ['completed'],
    );
    const { payments } = (await control(stack.simulator, 'payments')) as {
      payments: { metadata: { top_up_id: string } }[];
    };
    const paid = payments.filter(({ metadata }) => metadata.top_up_id === topUps[0]?.id);
    assert.equal(paid.length, 1);
  }

  /** Resolves when the processor has been asked to charge the card, which takes a while. */
  async function isBeingCharged(): Promise<void> {
    const slow = { method: 'POST', path: '/v1/payment_intents/', kind: 'delay', ms: 8_000 };
    await control(stack.simulator, 'faults', slow);
    await charge();
    await until(async () => {
      const [newest] = (await stripe.paymentIntents.list({ limit: 1 })).data;
      const [topUp] = await automatic();
      return topUp && newest?.metadata['top_up_id'] === topUp.id;
    });
  }

  /** Holds the balance after the charge and before the credit. A credit that came first is that of an earlier account. */
  async function holdBeforeCredit() {
    for (;;) {
      await isBeingCharged();
      const held = await holdConsumer(stack.database.url, account.consumerId);
      if ((await balanceOf(stack.api, account)) !== 29) return held;
      await held.release();
      await newAccount();
    }
  }

  it('the worker while it takes up the request of the charge', async () => {
    const held = await holdAccount(stack.database.url, account.consumerId);
    await charge();
    await held.waited(1);
    await killWorker();
    await held.release();
    worker = await startWorkerProcess({ env: stack.env });
    await comesOnce();
  });

  it('Temporal before the charge, and of the worker before Temporal is back', async () => {
    await temporal.crash();
    await charge();
    await until(async () => (await automatic())[0]?.status === 'pending');
    await killWorker();
    await temporal.restart();
    worker = await startWorkerProcess({ env: stack.env });
    await comesOnce();
  });

  it('the worker while the card is charged', async () => {
    await isBeingCharged();
    await killWorker();
    worker = await startWorkerProcess({ env: stack.env });
    await comesOnce();
  });

  it('the worker while the credit is written', async () => {
    const held = await holdBeforeCredit();
    await held.waited(1);
    await killWorker();
    await held.release();
    worker = await startWorkerProcess({ env: stack.env });
    await comesOnce();
  });
});
