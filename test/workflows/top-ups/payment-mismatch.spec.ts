/**
 * A payment that does not match its top-up credits nothing. The top-up ends once all of the payment is refunded, or an
 * operator cancels it.
 */
import assert from 'node:assert/strict';
import { wireId } from '../../../src/domain/ids.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { readBacklog } from '../../../src/store/operators/backlog.ts';
import { listDifferences } from '../../../src/store/top-ups/reconciliation.ts';
import { sql } from '../../../src/store/database.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { examineProcessor } from '../../../src/stripe/examine-processor.ts';
import { idOf } from '../../../src/stripe/verdict.ts';
import { reportPayment } from '../../../src/temporal/start-top-up.ts';
import type { TopUpProgress } from '../../../workflows/messages.ts';
import { farebox, until } from '../../support/stack.ts';
import {
  openTopUpHarness,
  QUICK_RETRIES,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

describe('a top-up whose payment does not match it', () => {
  let harness: TopUpHarness;
  let consumer: Consumer;

  before(async () => {
    harness = await openTopUpHarness({
      FIRST_ASK_MS: '3600000',
      RECONCILE_REVIEW_MS: '300,1000,3000,15000',
      ...QUICK_RETRIES,
    });
    await harness.startWorker();
  });
  beforeEach(async () => {
    await harness.control('webhooks', { mode: 'deliver' });
    consumer = await harness.newConsumer();
  });
  afterEach(async () => {
    assert.equal((await harness.books(consumer)).credited, 0);
    assert.deepEqual(await examineLedger(harness.database), []);
  });
  after(() => harness.close());

  it('waits for an operator, and expires once all of the payment is refunded', async () => {
    const { topUp, intent } = await mismatched();
    // A report of a refund may end the workflow before the operator acts.
    await harness.control('webhooks', { mode: 'drop' });
    const workflow = harness.workflow(topUp.id);
    await harness.stripe.refunds.create({ payment_intent: intent, amount: 1_000 });
    await workflow.executeUpdate('retry');
    assert.equal((await progress(topUp)).waitingFor, 'operator');
    assert.equal((await harness.topUp(topUp.id)).status, 'pending');
    await harness.stripe.refunds.create({ payment_intent: intent });
    await workflow.executeUpdate('retry');
    await harness.statusBecomes(topUp, 'expired');
    await workflow.result();
  });

  it('expires when an operator cancels it after the refund', async () => {
    const { topUp, intent } = await mismatched();
    await harness.control('webhooks', { mode: 'drop' });
    await harness.stripe.refunds.create({ payment_intent: intent });
    await harness.workflow(topUp.id).executeUpdate('cancel');
    await harness.statusBecomes(topUp, 'expired');
  });

  it('expires by reconciliation, though its workflow was terminated', async () => {
    const { topUp, intent } = await mismatched();
    await harness.workflow(topUp.id).terminate();
    await harness.stripe.refunds.create({ payment_intent: intent });
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = now() - interval '17 days' where id = ${topUp.id}
    `);
    await harness.reconcile();
    await harness.statusBecomes(topUp, 'expired');
    assert.deepEqual(await listDifferences(harness.database), []);
  });

  it('expires when an operator cancels it and keeps the payment, which reconciliation lists until it is settled', async () => {
    const { topUp, intent } = await mismatched();
    await harness.workflow(topUp.id).executeUpdate('cancel');
    await harness.statusBecomes(topUp, 'expired');
    await harness.workflow(topUp.id).result();
    await harness.reconcile();
    const [difference, ...more] = await listDifferences(harness.database);
    assert.deepEqual(more, []);
    assert.deepEqual(
      [difference?.kind, difference?.paymentIntentIds],
      ['payment_mismatch', [intent]],
    );
    // What is reported about the payment later changes nothing, and waits for nobody.
    await reportPayment(harness.temporal, topUp);
    await harness.workflow(topUp.id).result();
    assert.equal((await harness.topUp(topUp.id)).status, 'expired');

    const id = wireId('topUp', topUp.id);
    const settle = () =>
      farebox(['reconcile', '--settle', id, '--reason', 'kept, and credited by hand'], harness);
    const ofDoctor = async () =>
      (await examineProcessor(harness.database, harness.stripe)).filter(({ subject }) =>
        subject.includes(topUp.id),
      );
    const counted = async () =>
      (await readBacklog(harness.database)).waiting.find(({ what }) => what === 'differences')
        ?.count;
    assert.deepEqual([(await ofDoctor()).length, await counted()], [1, 1]);
    assert.match(await settle(), new RegExp(`^Settled for ${id}: Stripe has a payment of another`));
    await assert.rejects(settle(), /Nothing differs about tu_\w+ that is not settled/);
    const [entry] = JSON.parse(
      `[${await farebox(['audit', '--limit', '1', '--json'], harness)}]`,
    ) as [{ action: string; details: Record<string, unknown> }];
    assert.equal(entry.action, 'difference.settled');
    assert.deepEqual(entry.details, {
      topUpId: id,
      kind: 'payment_mismatch',
      processor: 25,
      ledger: 0,
      reason: 'kept, and credited by hand',
    });
    await harness.reconcile();
    assert.deepEqual(await listDifferences(harness.database), []);
    assert.deepEqual([(await ofDoctor()).length, await counted()], [0, 0]);

    await harness.stripe.refunds.create({ payment_intent: intent, amount: 1_000 });
    await harness.reconcile();
    const [changed] = await listDifferences(harness.database);
    assert.deepEqual([changed?.topUpId, changed?.processorMicros], [topUp.id, 15_000_000]);
    assert.deepEqual([(await ofDoctor()).length, await counted()], [1, 1]);
  });

  /** $25.00 were paid for a top-up of $26.00. */
  async function mismatched(): Promise<{ readonly topUp: TopUp; readonly intent: string }> {
    const topUp = await harness.checkout(consumer, 25);
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set amount_micros = 26000000 where id = ${topUp.id}
    `);
    await harness.pay(topUp.sessionUrl);
    await until(() => harness.stuck(topUp));
    const session = await harness.stripe.checkout.sessions.retrieve(topUp.sessionId ?? '');
    return { topUp, intent: idOf(session.payment_intent) ?? '' };
  }

  function progress({ id }: TopUp): Promise<TopUpProgress> {
    return harness.workflow(id).query<TopUpProgress>('status');
  }
});
