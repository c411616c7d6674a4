/** The operators' view of a top-up in the Temporal UI, and their means to act. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { Micros } from '../../../src/domain/money.ts';
import { sql } from '../../../src/store/database.ts';
import {
  findProcessorCustomer,
  recordProcessorCustomer,
} from '../../../src/store/top-ups/processor-customers.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { wireId } from '../../../src/domain/ids.ts';
import { reportPayment } from '../../../src/temporal/start-top-up.ts';
import { retryUnlessEnded } from '../../support/retry-unless-ended.ts';
import { holdConsumer } from '../../support/row-locks.ts';
import type { TopUpProgress } from '../../../workflows/messages.ts';
import { until } from '../../support/stack.ts';
import {
  openTopUpHarness,
  QUICK_RETRIES,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

describe('operators and a top-up', () => {
  let harness: TopUpHarness;

  before(async () => {
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000', ...QUICK_RETRIES });
    await harness.startWorker();
  });

  after(async () => {
    await harness.close();
  });

  it('shows what a checkout waits for, its amount and its consumer', async () => {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await until(() => found(topUp, 'WaitingFor = "payment" and AmountDollars = 25'));
    const { staticSummary } = await harness.workflow(topUp.id).describe();
    assert.equal(await staticSummary(), 'Top-up of $25.00, checkout');
    const metadata = await harness.workflow(topUp.id).query('__temporal_workflow_metadata');
    assert.match(JSON.stringify(metadata), /Waiting for the \*\*payment\*\*/);
    assert.match(JSON.stringify(metadata), /For operators/);
    const told = `\`${wireId('topUp', topUp.id)}\`: .*25\\.00, checkout, .*At the processor: \`${topUp.sessionId}\``;
    assert.match(JSON.stringify(metadata), new RegExp(told));
  });

  it('closes the session when a checkout is canceled', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    const after = await harness.workflow(topUp.id).executeUpdate<TopUpProgress, []>('cancel');
    assert.equal(after.status, 'expired');
    assert.equal((await harness.topUp(topUp.id)).status, 'expired');
    const session = await harness.stripe.checkout.sessions.retrieve(topUp.sessionId!);
    assert.equal(session.status, 'expired');
    await until(() => found(topUp, 'TopUpStatus = "expired" and ExecutionStatus = "Completed"'));
  });

  it('closes the payment of a stuck direct top-up when it is canceled, and takes nothing', async () => {
    const consumer = await harness.newConsumer();
    const refusing = { method: 'POST', path: '/v1/payment_intents/', kind: 'error', status: 503 };
    await harness.control('faults', { ...refusing, times: 1_000 });
    const result = await harness.request(consumer, 'direct', 20);
    assert.ok('topUp' in result);
    const { topUp } = result;
    const workflow = harness.workflow(topUp.id);
    // The list of workflows would show it later: perhaps when the pause before the next charge is almost over.
    await until(() => harness.stuck(topUp));
    await harness.forgetFaults();
    const after = await workflow.executeUpdate<TopUpProgress, []>('cancel');
    assert.equal(after.status, 'expired');
    const { paymentIntentId } = await harness.topUp(topUp.id);
    const intent = await harness.stripe.paymentIntents.retrieve(paymentIntentId ?? '');
    assert.equal(intent.status, 'canceled');
    assert.deepEqual(await harness.paymentsOf(topUp), []);
  });

  describe('of an account whose objects the processor does not know', () => {
    it('opens a checkout and charges a card for a new customer', async () => {
      const consumer = await harness.newConsumer();
      await recordProcessorCustomer(harness.database, consumer.accountId, 'cus_deleted');
      const topUp = await harness.checkout(consumer, 25);
      const { customer } = await harness.stripe.checkout.sessions.retrieve(topUp.sessionId!);
      assert.notEqual(customer, 'cus_deleted');
      assert.equal(await findProcessorCustomer(harness.database, consumer.accountId), customer);

      const another = await harness.newConsumer();
      await recordProcessorCustomer(harness.database, another.accountId, 'cus_deleted');
      assert.equal((await harness.requestDirect(another, 25)).kind, 'completed');
    });

    it('ends a checkout whose session does not exist when it is canceled', async () => {
      const topUp = await harness.checkout(await harness.newConsumer(), 25);
      await harness.database.query(sql.typeAlias('nothing')`
        update farebox.top_ups set session_id = 'cs_of_another_account' where id = ${topUp.id}
      `);
      const after = await harness.workflow(topUp.id).executeUpdate<TopUpProgress, []>('cancel');
      assert.equal(after.status, 'expired');
    });
  });

  it("ends the same way when it is canceled by Temporal's own means", async () => {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.workflow(topUp.id).cancel();
    assert.equal((await harness.workflow(topUp.id).result()).status, 'expired');
    assert.equal((await harness.topUp(topUp.id)).status, 'expired');
  });

  it('takes updates after that, too, while the processor is down', async () => {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    const down = { path: '/v1/checkout', kind: 'error', status: 503, times: 1_000 };
    await harness.control('faults', { method: 'POST', ...down });
    await harness.workflow(topUp.id).cancel();
    await until(() => found(topUp, 'Stuck = true and WaitingFor = "processor"'));
    const still = await harness.workflow(topUp.id).executeUpdate<TopUpProgress, []>('retry');
    assert.equal(still.stuck?.step, 'cancel');
    await harness.forgetFaults();
    await retryUnlessEnded(harness.workflow(topUp.id));
    assert.equal((await harness.workflow(topUp.id).result()).status, 'expired');
  });

  it("is no longer found by the runbook's filter once it was terminated", async () => {
    const runbook = await readFile('docs/runbook.md', 'utf8');
    const [, filter = ''] = /the Temporal UI, `([^`]+)`/.exec(runbook) ?? [];
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await harness.control('faults', {
      path: '/v1/checkout',
      kind: 'error',
      status: 503,
      times: 1_000,
    });
    await harness.workflow(topUp.id).signal('paymentReported');
    await until(() => found(topUp, filter));
    await harness.workflow(topUp.id).terminate();
    await harness.forgetFaults();
    await until(() => found(topUp, 'ExecutionStatus = "Terminated"'));
    assert.equal(await found(topUp, filter), false);
  });

  it('credits a checkout that is canceled after it was paid', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    await harness.control('webhooks', { mode: 'drop' });
    await harness.pay(topUp.sessionUrl);
    await harness.control('webhooks', { mode: 'deliver' });
    const after = await harness.workflow(topUp.id).executeUpdate<TopUpProgress, []>('cancel');
    assert.equal(after.status, 'completed');
    assert.equal((await harness.books(consumer)).credited, 25_000_000);
  });

  it('refuses a late cancel at once, and says why', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    const consumerId = wireId('consumer', consumer.consumerId);
    const held = await holdConsumer(harness.config.databaseUrl, consumerId);
    await harness.pay(topUp.sessionUrl);
    await held.waited(1); // it is being credited
    await assert.rejects(harness.workflow(topUp.id).executeUpdate('cancel'), (error) => {
      assert.match(String((error as Error).cause), /Too late to cancel.*"credit"/);
      return true;
    });
    await held.release();
    await harness.statusBecomes(topUp, 'completed');
  });

  it('names the database when the database fails, and the longest retry interval', async () => {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await rename('top_ups', 'top_ups_away');
    try {
      await reportPayment(harness.temporal, topUp);
      await until(() => found(topUp, 'Stuck = true and WaitingFor = "database"'));
      const metadata = await harness.workflow(topUp.id).query('__temporal_workflow_metadata');
      assert.match(JSON.stringify(metadata), /growing intervals up to 10 minutes/);
    } finally {
      await rename('top_ups_away', 'top_ups');
    }
    await harness.workflow(topUp.id).executeUpdate('retry');
    const after = await harness.workflow(topUp.id).executeUpdate<TopUpProgress, []>('cancel');
    assert.equal(after.status, 'expired');
  });

  it('offers no cancel where it would be refused', async () => {
    const topUp = await harness.checkout(await harness.newConsumer(), 25);
    await rename('lots', 'lots_away');
    try {
      await harness.pay(topUp.sessionUrl);
      await until(() => found(topUp, 'Stuck = true and WaitingFor = "database"'));
      const workflow = harness.workflow(topUp.id);
      const metadata = JSON.stringify(await workflow.query('__temporal_workflow_metadata'));
      assert.match(metadata, /the step `credit` keeps failing.*It can no longer be canceled/);
      await assert.rejects(workflow.executeUpdate('cancel'));
    } finally {
      await rename('lots_away', 'lots');
    }
    await retryUnlessEnded(harness.workflow(topUp.id));
    await harness.statusBecomes(topUp, 'completed');
  });

  it('shows a stuck top-up, credits no other amount, and continues on retry', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 25);
    await setAmount(topUp, 26_000_000);
    await harness.pay(topUp.sessionUrl);
    await until(() => found(topUp, 'Stuck = true and WaitingFor = "operator"'));
    const stuck = await harness.workflow(topUp.id).query<TopUpProgress>('status');
    assert.match(stuck.stuck!.message, /a different payment than the one requested/);
    assert.equal((await harness.books(consumer)).credited, 0);
    const metadata = await harness.workflow(topUp.id).query('__temporal_workflow_metadata');
    assert.match(JSON.stringify(metadata), /\*\*Stuck\*\*.*the update `retry`/);

    const still = await harness.workflow(topUp.id).executeUpdate<TopUpProgress, []>('retry');
    assert.equal(still.stuck?.step, 'ask');
    await setAmount(topUp, 25_000_000);
    await retryUnlessEnded(harness.workflow(topUp.id));
    await harness.statusBecomes(topUp, 'completed');
    assert.equal((await harness.books(consumer)).credited, 25_000_000);
    await until(() => found(topUp, 'Stuck is null and ExecutionStatus = "Completed"'));
  });

  it('answers pending while the processor is down, and opens the session when it is back', async () => {
    const consumer = await harness.newConsumer();
    await harness.control('faults', {
      method: 'POST',
      path: '/v1/checkout',
      kind: 'error',
      status: 503,
      times: 1_000,
    });
    const result = await harness.request(consumer, 'checkout', 25, 'key');
    assert.ok(result.kind === 'pending');
    assert.equal(result.topUp.sessionUrl, null);
    await until(() => found(result.topUp, 'Stuck = true and WaitingFor = "processor"'));

    await harness.forgetFaults();
    await harness.workflow(result.topUp.id).executeUpdate('retry');
    const repeated = await until(async () => {
      const again = await harness.request(consumer, 'checkout', 25, 'key');
      assert.ok(again.kind === 'pending', again.kind);
      return again.topUp.sessionUrl !== null && again.topUp;
    });
    assert.equal(repeated.id, result.topUp.id);
    assert.match(String(repeated.sessionUrl), /^http/);
  });

  async function found(topUp: TopUp, query: string): Promise<boolean> {
    const workflowId = harness.workflow(topUp.id).workflowId;
    const { count } = await harness.temporal.client.workflow.count(
      `WorkflowId = "${workflowId}" and ${query}`,
    );
    return count === 1;
  }

  async function rename(from: string, to: string): Promise<void> {
    const names = [sql.identifier(['farebox', from]), sql.identifier([to])] as const;
    await harness.database.query(sql.typeAlias('nothing')`
      alter table ${names[0]} rename to ${names[1]}
    `);
  }

  async function setAmount(topUp: TopUp, amountMicros: number): Promise<void> {
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set amount_micros = ${amountMicros as Micros} where id = ${topUp.id}
    `);
  }
});
