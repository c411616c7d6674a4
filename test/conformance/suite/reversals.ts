/** Refunds and disputes. The banks of Stripe's test cards do what their names say. */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { asMicros } from '../../../src/domain/money.ts';
import { makeRefund, readReversals } from '../../../src/stripe/reversals.ts';
import { until } from '../../support/stack.ts';
import { eventOf, type Target } from '../target.ts';
import { CENTS, errorOf, payWith } from './order.ts';

function refundOf(dollars: number) {
  return { id: randomUUIDv7(), grossMicros: asMicros(dollars * 1_000_000) };
}

export function describeReversals(get: () => Target): void {
  async function disputed(card: string) {
    const { stripe, pollMs } = get();
    const { intent } = await payWith(get(), card);
    const list = () => stripe.disputes.list({ payment_intent: intent.id });
    const dispute = await until(async () => (await list()).data[0], { intervalMs: pollMs });
    return { intent, dispute };
  }

  /** Waits for the bank's answer. */
  async function answered(id: string, evidence: string, status: string): Promise<void> {
    const { stripe, pollMs } = get();
    await stripe.disputes.update(id, { evidence: { uncategorized_text: evidence } });
    const read = async () => (await stripe.disputes.retrieve(id)).status;
    await until(async () => (await read()) === status, { intervalMs: pollMs });
  }

  describe('refunds', () => {
    it('give back a part, then the rest, and never more', async () => {
      const { stripe } = get();
      const { intent } = await payWith(get(), 'pm_card_visa');
      const part = refundOf(10);
      const made = await makeRefund(stripe, intent.id, part);
      assert.ok(made.kind === 'made');
      assert.deepEqual(made.reported, { ...made.reported, refundId: part.id, status: 'made' });
      assert.equal(made.reported.grossMicros, part.grossMicros);
      assert.deepEqual(await makeRefund(stripe, intent.id, part), made);
      assert.equal((await makeRefund(stripe, intent.id, refundOf(15.01))).kind, 'refused');
      const rest = await makeRefund(stripe, intent.id, refundOf(15));
      assert.ok(rest.kind === 'made');
      const error = await errorOf(stripe.refunds.create({ payment_intent: intent.id }));
      assert.equal(error.code, 'charge_already_refunded');
      assert.deepEqual(await readReversals(stripe, intent.id), [rest.reported, made.reported]);

      const { id, charge } = await stripe.refunds.retrieve(made.reported.processorId);
      await eventOf(get(), 'refund.created', id);
      const { data } = await stripe.balanceTransactions.list({ source: id });
      assert.deepEqual(
        data.map(({ type, amount }) => [type, amount]),
        [['refund', -1_000]],
      );
      const refunded = await stripe.charges.retrieve(charge as string);
      assert.equal(refunded.amount_refunded, CENTS);
      assert.equal(refunded.refunded, true);
      await eventOf(get(), 'charge.refunded', refunded.id);
    });

    it('are not made for a payment that never succeeded', async () => {
      const { intent } = await payWith(get(), 'pm_card_chargeCustomerFail');
      assert.equal((await makeRefund(get().stripe, intent.id, refundOf(1))).kind, 'refused');
    });

    it('that are pending count as made, and succeed', async () => {
      const { stripe, pollMs } = get();
      const { intent } = await payWith(get(), 'pm_card_pendingRefund');
      const refund = await stripe.refunds.create({ payment_intent: intent.id });
      assert.equal(refund.status, 'pending');
      assert.equal((await readReversals(stripe, intent.id))[0]?.status, 'made');
      const read = async () => (await stripe.refunds.retrieve(refund.id)).status;
      await until(async () => (await read()) === 'succeeded', { intervalMs: pollMs });
      await eventOf(get(), 'refund.updated', refund.id);
    });

    it('that the bank rejects are failed, and the money is back', async () => {
      const { stripe, pollMs } = get();
      const { intent } = await payWith(get(), 'pm_card_refundFail');
      const made = await makeRefund(stripe, intent.id, refundOf(25));
      assert.ok(made.kind === 'made');
      const reported = async () => (await readReversals(stripe, intent.id))[0];
      await until(async () => (await reported())?.status === 'failed', { intervalMs: pollMs });
      await eventOf(get(), 'refund.failed', made.reported.processorId);
    });
  });

  describe('disputes', () => {
    it('hold the money, and give it back when they are won', async () => {
      const { stripe } = get();
      const { intent, dispute } = await disputed('pm_card_createDispute');
      assert.equal(dispute.status, 'needs_response');
      assert.equal(dispute.reason, 'fraudulent');
      const [open] = await readReversals(stripe, intent.id);
      assert.deepEqual(open, {
        kind: 'dispute',
        processorId: dispute.id,
        grossMicros: 25_000_000,
        status: 'open',
      });
      await eventOf(get(), 'charge.dispute.created', dispute.id);
      await eventOf(get(), 'charge.dispute.funds_withdrawn', dispute.id);
      const [taken] = (await stripe.disputes.retrieve(dispute.id)).balance_transactions;
      assert.ok(taken && taken.fee > 0, 'the bank’s dispute has a fee');
      assert.deepEqual([taken.type, taken.amount], ['adjustment', -CENTS]);
      assert.equal(taken.net, taken.amount - taken.fee);
      const error = await errorOf(stripe.refunds.create({ payment_intent: intent.id }));
      assert.equal(error.code, 'charge_disputed');
      await answered(dispute.id, 'winning_evidence', 'won');
      await eventOf(get(), 'charge.dispute.closed', dispute.id);
      await eventOf(get(), 'charge.dispute.funds_reinstated', dispute.id);
      assert.equal((await readReversals(stripe, intent.id))[0]?.status, 'won');
    });

    it('keep the money when they are lost', async () => {
      const { stripe } = get();
      const { intent, dispute } = await disputed('pm_card_createDisputeProductNotReceived');
      assert.equal(dispute.reason, 'product_not_received');
      await answered(dispute.id, 'losing_evidence', 'lost');
      await eventOf(get(), 'charge.dispute.closed', dispute.id);
      assert.equal((await readReversals(stripe, intent.id))[0]?.status, 'lost');
    });

    it('are under review while the bank reads the evidence', async () => {
      const { dispute } = await disputed('pm_card_createDispute');
      await answered(dispute.id, 'We delivered.', 'under_review');
      await eventOf(get(), 'charge.dispute.updated', dispute.id);
    });

    it('are announced by a warning of fraud, which ends when there is nothing to do', async () => {
      const { stripe, pollMs } = get();
      const { intent } = await payWith(get(), 'pm_card_createIssuerFraudRecord');
      const list = () => stripe.radar.earlyFraudWarnings.list({ payment_intent: intent.id });
      const warning = await until(async () => (await list()).data[0], { intervalMs: pollMs });
      assert.equal(warning.actionable, true);
      assert.deepEqual(await readReversals(stripe, intent.id), [
        { kind: 'warning', processorId: warning.id, grossMicros: 25_000_000, status: 'open' },
      ]);
      await eventOf(get(), 'radar.early_fraud_warning.created', warning.id);
      await stripe.refunds.create({ payment_intent: intent.id });
      const read = async () =>
        (await stripe.radar.earlyFraudWarnings.retrieve(warning.id)).actionable;
      await until(async () => !(await read()), { intervalMs: pollMs });
      await eventOf(get(), 'radar.early_fraud_warning.updated', warning.id);
    });

    it('take no money while they are inquiries, and take it when they grow', async () => {
      const { stripe } = get();
      const { intent, dispute } = await disputed('pm_card_createDisputeInquiry');
      assert.equal(dispute.status, 'warning_needs_response');
      assert.deepEqual(dispute.balance_transactions, []);
      assert.equal((await readReversals(stripe, intent.id))[0]?.status, 'won');
      await answered(dispute.id, 'escalate_inquiry_evidence', 'needs_response');
      assert.equal((await readReversals(stripe, intent.id))[0]?.status, 'open');
    });
  });
}
