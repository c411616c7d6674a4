/** A credited top-up afterwards: refunds and disputes, against the real simulator. */
import assert from 'node:assert/strict';
import type { Stripe } from 'stripe';
import { Type } from 'typebox';
import { wireId } from '../../../src/domain/ids.ts';
import type { Micros } from '../../../src/domain/money.ts';
import { row, sql } from '../../../src/store/database.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import { getTopUp, type TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { reportReversal } from '../../../src/temporal/start-reversals.ts';
import type { ReversalsProgress } from '../../../workflows/messages.ts';
import { endAll } from '../../support/end-all.ts';
import { payerOf, type Payer } from '../../support/payer.ts';
import { proveBooks } from '../../support/books.ts';
import { retryUnlessEnded } from '../../support/retry-unless-ended.ts';
import { holdConsumer } from '../../support/row-locks.ts';
import { farebox, until, type ServerProcess } from '../../support/stack.ts';
import {
  openTopUpHarness,
  QUICK_RETRIES,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

const statusRow = row(Type.Object({ status: Type.String() }));

interface Paid {
  readonly payer: Payer;
  readonly topUp: TopUp;
  readonly intent: string;
}

/** An entry of the audit log, as `farebox audit --json` prints it. */
interface Entry {
  readonly action: string;
  readonly details: { readonly topUpId?: string };
}

describe('a credited top-up', () => {
  let harness: TopUpHarness;
  let worker: ServerProcess;

  before(async () => {
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000', ...QUICK_RETRIES });
    worker = await harness.startWorkerProcess();
  });
  afterEach(async () => assert.deepEqual(await examineLedger(harness.database), []));
  after(() =>
    endAll(
      () => proveBooks(harness.env),
      () => harness.close(),
    ),
  );

  it('is refunded by a command: from the balance at once, then at the processor', async () => {
    const { payer, topUp, intent } = await paid(10, 4.005);
    const printed = await farebox(['refund', wireId('topUp', topUp.id), '--json'], harness);
    const asked = JSON.parse(printed) as { refundId: string; amount: number };
    assert.equal(asked.amount, 5.99);
    assert.equal((await payer.money()).balance, 5_000);
    await until(async () => (await refundsOf(intent)).length === 1);
    const [refund] = await refundsOf(intent);
    assert.deepEqual([refund?.amount, refund?.metadata], [599, { refund_id: asked.refundId }]);
    await settled(topUp, 'partially_refunded');
  });

  it('is not refunded by an invalid command, which says why', async () => {
    const { topUp } = await paid(10, 10);
    const refused = async (said: RegExp, ...args: readonly string[]) =>
      assert.rejects(
        farebox(['refund', ...args], harness),
        (error: Error & { stderr?: string }) => {
          assert.match(error.stderr ?? '', said);
          return true;
        },
      );
    const id = wireId('topUp', topUp.id);
    await refused(/Top-up tu_0{32} not found/, `tu_${'0'.repeat(32)}`);
    await refused(/tu_\w+ has been spent in full, so there is nothing left to refund/, id);
    await refused(/whole cents/, id, '--amount', '0.001');
    await refused(/more than \$0/, id, '--amount', '0');
    assert.equal((await harness.topUp(topUp.id)).status, 'completed');
  });

  it('is refunded though the worker died between the balance and the processor', async () => {
    const { payer, topUp, intent } = await paid(10);
    worker.kill('SIGKILL');
    await worker.exited;
    await refund(topUp, 3_000_000);
    assert.equal((await payer.money()).balance, 7_000_000);
    assert.deepEqual(await refundsOf(intent), []);
    worker = await harness.startWorkerProcess();
    await settled(topUp, 'partially_refunded');
    assert.deepEqual(
      (await refundsOf(intent)).map(({ amount }) => amount),
      [300],
    );
  });

  for (const fault of [
    { kind: 'do_then_error', status: 500 },
    { kind: 'do_then_drop' },
    { kind: 'drop' },
    { kind: 'error', status: 500 },
    { kind: 'error', status: 429, headers: { 'retry-after': '1' } },
    { kind: 'error', status: 409 },
  ]) {
    it(`is refunded once when the processor answers by ${JSON.stringify(fault)}`, async () => {
      const { payer, topUp, intent } = await paid(10);
      await harness.control('faults', { method: 'POST', path: '/v1/refunds', ...fault });
      await refund(topUp, 4_000_000);
      await until(async () => (await refundsOf(intent)).length === 1);
      await settled(topUp, 'partially_refunded');
      assert.equal((await refundsOf(intent)).length, 1);
      assert.deepEqual(await payer.money(), { balance: 6_000_000, held: 0, debt: 0 });
    });
  }

  it('is credited again when the processor refuses a refund for a dispute not yet reported', async () => {
    const { payer, topUp, intent } = await paid(10);
    await harness.control('webhooks', { mode: 'drop' });
    await harness.control('disputes', { payment_intent: intent, amount: 300 });
    await refund(topUp, 4_000_000);
    await settled(topUp, 'disputed');
    await harness.control('webhooks', { mode: 'deliver' });
    assert.deepEqual(await payer.money(), { balance: 7_000_000, held: 3_000_000, debt: 0 });
    assert.deepEqual(await refundsOf(intent), []);
  });

  it('is credited again, once, when a refund fails days after it was made', async () => {
    const { payer, topUp, intent } = await paid(10);
    await refund(topUp, 4_000_000);
    await settled(topUp, 'partially_refunded');
    const [made] = await refundsOf(intent);
    await harness.control(`refunds/${made?.id}/fail`);
    await settled(topUp, 'completed');
    assert.deepEqual(await payer.money(), { balance: 10_000_000, held: 0, debt: 0 });
    assert.equal((await payer.lots()).length, 2);
  });

  it('loses a refund made in the processor’s dashboard, and makes the spent part a debt', async () => {
    const { payer, topUp, intent } = await paid(10, 7);
    await harness.stripe.refunds.create({ payment_intent: intent });
    await settled(topUp, 'refunded');
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 7_000_000 });
    const again = await harness.requestDirect(payer, 10);
    assert.equal(again.kind, 'completed');
    assert.deepEqual(await payer.money(), { balance: 3_000_000, held: 0, debt: 0 });
  });

  it('is held while it is disputed, lost when the dispute is lost, and shows it to operators', async () => {
    const { payer, topUp, intent } = await paid(10, 6);
    const dispute = await opened(intent);
    await settled(topUp, 'disputed');
    assert.deepEqual(await payer.money(), { balance: 0, held: 4_000_000, debt: 6_000_000 });
    await until(() => found(topUp, 'TopUpStatus = "disputed" and ExecutionStatus = "Completed"'));
    const details = await detailsOf(topUp);
    assert.match(details, /\$4\.00 is on hold/);
    assert.match(details, /owes \\\\\$6\.00/);
    assert.match(details, /A \*\*dispute\*\* is open\. To do: respond/);
    assert.doesNotMatch(details, /fraud|No action needed/);

    await harness.control(`disputes/${dispute}/close`, { status: 'lost' });
    await settled(topUp, 'charged_back');
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 6_000_000 });
    await until(() => found(topUp, 'TopUpStatus = "charged_back" and WaitingFor is null'));
  });

  it('is restored when the dispute is won, even after it was lost', async () => {
    const { payer, topUp, intent } = await paid(10, 6);
    await refund(topUp, 1_000_000);
    await settled(topUp, 'partially_refunded');
    const dispute = await opened(intent);
    await settled(topUp, 'disputed');
    await harness.control(`disputes/${dispute}/close`, { status: 'lost' });
    await settled(topUp, 'charged_back');
    await harness.control(`disputes/${dispute}/close`, { status: 'won' });
    await settled(topUp, 'partially_refunded');
    assert.deepEqual(await payer.money(), { balance: 3_000_000, held: 0, debt: 0 });
  });

  it('is left alone by an inquiry, until it becomes a dispute', async () => {
    const { payer, topUp, intent } = await paid(10);
    const asked = await opened(intent, { inquiry: true });
    await settled(topUp, 'completed');
    assert.equal((await payer.money()).held, 0);
    await harness.control(`disputes/${asked}/escalate`);
    await settled(topUp, 'disputed');
    assert.equal((await payer.money()).held, 10_000_000);
  });

  it('is refunded though the bank inquires in its own currency', async () => {
    const { payer, topUp, intent } = await paid(10);
    await opened(intent, { inquiry: true, currency: 'eur' });
    await refund(topUp, 4_000_000);
    await settled(topUp, 'partially_refunded');
    assert.deepEqual(await payer.money(), { balance: 6_000_000, held: 0, debt: 0 });
  });

  it('is held by a warning of fraud until the dispute that it announced', async () => {
    const { payer, topUp, intent } = await paid(10, 6);
    await harness.control('fraud-warnings', { payment_intent: intent });
    await settled(topUp, 'disputed');
    assert.deepEqual(await payer.money(), { balance: 0, held: 4_000_000, debt: 6_000_000 });
    const dispute = await opened(intent);
    await until(async () => (await warningsOf(topUp)).every(({ status }) => status === 'won'));
    await settled(topUp, 'disputed');
    assert.deepEqual(await payer.money(), { balance: 0, held: 4_000_000, debt: 6_000_000 });
    await harness.control(`disputes/${dispute}/close`, { status: 'won' });
    await settled(topUp, 'completed');
    assert.deepEqual(await payer.money(), { balance: 4_000_000, held: 0, debt: 0 });
  });

  it('is refunded though a warning of fraud holds it, and a refused refund changes nothing', async () => {
    const { payer, topUp, intent } = await paid(10, 6);
    await harness.control('fraud-warnings', { payment_intent: intent });
    await settled(topUp, 'disputed');
    const before = await payer.money();
    const tooMuch = await requestRefund(harness.database, topUp.id, 5_000_000 as Micros);
    assert.deepEqual(tooMuch, { kind: 'exceeds_unspent', refundableMicros: 4_000_000 });
    assert.deepEqual(await payer.money(), before);
    await refund(topUp, 4_000_000);
    await until(async () => (await refundsOf(intent)).length === 1);
    await settled(topUp, 'partially_refunded');
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 0 });
  });

  it('is held by the warning again when its refund is refused, or fails at the bank', async () => {
    const { payer, topUp, intent } = await paid(10, 6);
    await harness.control('fraud-warnings', { payment_intent: intent });
    await settled(topUp, 'disputed');
    assert.match(await detailsOf(topUp), /dismiss-warning tu_/);
    assert.doesNotMatch(await detailsOf(topUp), /dispute\*\*|No action needed/);
    const before = await payer.money();
    assert.deepEqual(before, { balance: 0, held: 4_000_000, debt: 6_000_000 });
    const refused = { method: 'POST', path: '/v1/refunds', kind: 'error', status: 400 };
    await harness.control('faults', refused);
    await refund(topUp, 4_000_000);
    await settled(topUp, 'disputed');
    assert.deepEqual(await payer.money(), before);
    assert.deepEqual(await refundsOf(intent), []);
    assert.match(await detailsOf(topUp), /refund of .+4\.00 failed.+An unknown error occurred\./);

    await refund(topUp, 4_000_000);
    await settled(topUp, 'partially_refunded');
    const [made] = await refundsOf(intent);
    await harness.control(`refunds/${made?.id}/fail`);
    await settled(topUp, 'disputed');
    assert.deepEqual(await payer.money(), before);
    assert.match(await detailsOf(topUp), /refund of .+4\.00 failed.+expired or canceled card/);
  });

  for (const refunded of ['by an operator', 'in the dashboard'] as const) {
    it(`is held by the warning again when its full refund, made ${refunded}, fails`, async () => {
      const { payer, topUp, intent } = await paid(10);
      await harness.control('fraud-warnings', { payment_intent: intent });
      await settled(topUp, 'disputed');
      if (refunded === 'by an operator') await refund(topUp, 10_000_000);
      else await harness.stripe.refunds.create({ payment_intent: intent });
      await settled(topUp, 'refunded');
      assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 0 });
      // Stripe calls the warning no longer actionable, since the payment was refunded in full.
      const [made] = await refundsOf(intent);
      await harness.control(`refunds/${made?.id}/fail`);
      await settled(topUp, 'disputed');
      assert.deepEqual(await payer.money(), { balance: 0, held: 10_000_000, debt: 0 });
    });
  }

  it('is spendable once an operator has dismissed the warning, even if it is reported again', async () => {
    const { payer, topUp, intent } = await paid(10);
    const id = wireId('topUp', topUp.id);
    await assert.rejects(farebox(['dismiss-warning', id], harness), /no open fraud warning/);
    await harness.control('fraud-warnings', { payment_intent: intent });
    await settled(topUp, 'disputed');
    await farebox(['dismiss-warning', id], harness);
    const entry = JSON.parse(await farebox(['audit', '--limit', '1', '--json'], harness)) as Entry;
    assert.deepEqual([entry.action, entry.details.topUpId], ['warning.dismissed', id]);
    assert.deepEqual(await payer.money(), { balance: 10_000_000, held: 0, debt: 0 });
    await report(await eventsOf(intent, 'radar.early_fraud_warning.created'));
    await settled(topUp, 'completed');
    assert.deepEqual(await payer.money(), { balance: 10_000_000, held: 0, debt: 0 });
  });

  it('supports several partial disputes of one payment', async () => {
    const { payer, topUp, intent } = await paid(10);
    const first = await opened(intent, { amount: 300 });
    const second = await opened(intent, { amount: 700 });
    await settled(topUp, 'disputed');
    await until(async () => (await payer.money()).held === 10_000_000);
    await harness.control(`disputes/${first}/close`, { status: 'won' });
    await until(async () => (await payer.money()).held === 7_000_000);
    await harness.control(`disputes/${second}/close`, { status: 'lost' });
    await settled(topUp, 'charged_back');
    assert.deepEqual(await payer.money(), { balance: 3_000_000, held: 0, debt: 0 });
  });

  it('processes a refund that failed while it was disputed', async () => {
    const { payer, topUp, intent } = await paid(10);
    await refund(topUp, 10_000_000);
    await settled(topUp, 'refunded');
    const [made] = await refundsOf(intent);
    await opened(intent, { amount: 1_000 });
    await settled(topUp, 'disputed');
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 10_000_000 });
    await harness.control(`refunds/${made?.id}/fail`);
    await until(async () => (await payer.money()).held === 10_000_000);
    assert.deepEqual(await payer.money(), { balance: 0, held: 10_000_000, debt: 0 });
  });

  for (const reported of ['before the payment was', 'never'] as const) {
    it(`is credited and refunded when the refund is reported ${reported}`, async () => {
      const consumer = await harness.newConsumer();
      const payer = payerOf(harness.database, consumer);
      const topUp = await harness.checkout(consumer, 10);
      await harness.control('webhooks', { mode: reported === 'never' ? 'drop' : 'hold' });
      await harness.pay(topUp.sessionUrl);
      const { data } = await harness.stripe.paymentIntents.list({ limit: 1 });
      const intent = data[0]?.id ?? '';
      await harness.stripe.refunds.create({ payment_intent: intent, amount: 400 });
      if (reported === 'never') await harness.workflow(topUp.id).executeUpdate('retry');
      else await report(await eventsOf(intent, 'charge.refunded'));
      await settled(topUp, 'partially_refunded');
      await harness.control('webhooks', { mode: 'deliver' });
      assert.deepEqual(await payer.money(), { balance: 6_000_000, held: 0, debt: 0 });
    });
  }

  it('is stuck where operators see it while the processor is down, and continues when it is back', async () => {
    const { payer, topUp, intent } = await paid(10);
    const down = { method: 'GET', path: '/v1/disputes', kind: 'error', status: 503, times: 1_000 };
    await harness.control('faults', down);
    await harness.control('disputes', { payment_intent: intent });
    const isStuck = () => found(topUp, 'Stuck = true and WaitingFor = "processor"');
    await until(isStuck);
    const stuck = await harness.reversals(topUp.id).query<ReversalsProgress>('status');
    assert.equal(stuck.stuck?.step, 'sync');
    await harness.forgetFaults();
    await retryUnlessEnded(harness.reversals(topUp.id));
    const after = await harness.reversals(topUp.id).result();
    assert.deepEqual([after.status, after.heldDollars], ['disputed', 10]);
    assert.equal((await payer.money()).held, 10_000_000);
  });

  it('starts again when its workflow was terminated in the middle', async () => {
    const { payer, topUp, intent } = await paid(10);
    const down = { method: 'POST', path: '/v1/refunds', kind: 'error', status: 503, times: 1_000 };
    await harness.control('faults', down);
    await refund(topUp, 1_000_000);
    await until(() => found(topUp, 'ExecutionStatus = "Running"'));
    await harness.reversals(topUp.id).terminate();
    await harness.forgetFaults();
    await refund(topUp, 2_000_000);
    await until(async () => (await refundsOf(intent)).length === 2);
    await settled(topUp, 'partially_refunded');
    assert.deepEqual(await payer.money(), { balance: 7_000_000, held: 0, debt: 0 });
  });

  it('ends a run of the release before, which read refunds itself', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await harness.checkout(consumer, 10);
    const handle = harness.workflow(topUp.id);
    await harness.control('webhooks', { mode: 'drop' });
    await handle.signal('reversalReported');
    // The run may see the payment by itself. It must not end before the refund is made.
    const { databaseUrl } = harness.config;
    const held = await holdConsumer(databaseUrl, wireId('consumer', consumer.consumerId));
    await harness.pay(topUp.sessionUrl);
    const { data } = await harness.stripe.paymentIntents.list({ limit: 1 });
    await harness.stripe.refunds.create({ payment_intent: data[0]?.id ?? '', amount: 400 });
    const retried = handle.executeUpdate('retry');
    await held.waited(1);
    await held.release();
    await retried;
    await harness.control('webhooks', { mode: 'deliver' });
    assert.equal((await handle.result()).status, 'partially_refunded');
    await settled(topUp, 'partially_refunded');
    const payer = payerOf(harness.database, consumer);
    assert.deepEqual(await payer.money(), { balance: 6_000_000, held: 0, debt: 0 });
  });

  it('is not touched by a run of `reversals` that somebody starts before the credit', async () => {
    const topUp = await harness.checkout(await harness.newConsumer(), 10);
    await reportReversal(harness.temporal, topUp);
    const view = await harness.reversals(topUp.id).result();
    assert.deepEqual(view, { status: 'pending', heldDollars: 0, debtDollars: 0 });
    await harness.pay(topUp.sessionUrl);
    await settled(topUp, 'completed');
  });

  async function paid(dollars: number, spentDollars = 0): Promise<Paid> {
    const payer = payerOf(harness.database, await harness.newConsumer());
    const result = await harness.requestDirect(payer, dollars);
    assert.ok(result.kind === 'completed', result.kind);
    if (spentDollars > 0) assert.ok(await payer.charge(Math.round(spentDollars * 1e6)));
    const topUp = await getTopUp(harness.database, result.topUp.id);
    return { payer, topUp, intent: topUp.paymentIntentId ?? '' };
  }

  async function refund(topUp: TopUp, amountMicros: number): Promise<void> {
    const result = await requestRefund(harness.database, topUp.id, amountMicros as Micros);
    assert.equal(result.kind, 'requested');
  }

  function warningsOf(topUp: TopUp) {
    return harness.database.any(sql.type(statusRow)`
      select status from farebox.reversals where top_up_id = ${topUp.id} and kind = 'warning'
    `);
  }

  async function refundsOf(intent: string): Promise<Stripe.Refund[]> {
    return (await harness.stripe.refunds.list({ payment_intent: intent })).data;
  }

  /** The id of the dispute that was opened last on a payment. */
  async function opened(intent: string, order: object = {}): Promise<string> {
    await harness.control('disputes', { payment_intent: intent, ...order });
    const { data } = await harness.stripe.disputes.list({ payment_intent: intent });
    return data[0]?.id ?? '';
  }

  async function eventsOf(intent: string, type: string): Promise<string[]> {
    const { data } = await harness.stripe.events.list({ type, limit: 100 });
    const isOf = ({ payment_intent }: { payment_intent?: unknown }) => payment_intent === intent;
    return data.filter(({ data: { object } }) => isOf(object as object)).map(({ id }) => id);
  }

  async function report(events: readonly string[]): Promise<void> {
    for (const id of events) await harness.control(`events/${id}/deliver`);
  }

  /** The status is reached and nothing is in progress any more. */
  async function settled(topUp: Pick<TopUp, 'id'>, status: TopUp['status']): Promise<void> {
    await harness.statusBecomes(topUp, status);
    await until(() => harness.isQuiet(topUp));
    assert.equal((await harness.topUp(topUp.id)).status, status);
  }

  async function detailsOf(topUp: TopUp): Promise<string> {
    return JSON.stringify(await harness.reversals(topUp.id).query('__temporal_workflow_metadata'));
  }

  async function found(topUp: TopUp, query: string): Promise<boolean> {
    const id = harness.reversals(topUp.id).workflowId;
    const { count } = await harness.temporal.client.workflow.count(
      `WorkflowId = "${id}" and ${query}`,
    );
    return count > 0;
  }
});
