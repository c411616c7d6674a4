/**
 * A second payment of one top-up is listed while the processor keeps any of it, even if the credited one was refunded.
 */
import assert from 'node:assert/strict';
import type { Stripe } from 'stripe';
import { wireId } from '../../../src/domain/ids.ts';
import { dollarsOf } from '../../../src/domain/money.ts';
import { listDifferences } from '../../../src/store/top-ups/reconciliation.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { examineProcessor } from '../../../src/stripe/examine-processor.ts';
import { farebox } from '../../support/stack.ts';
import { openTopUpHarness, type TopUpHarness } from '../../support/top-up-harness.ts';

describe('a top-up that was paid twice', () => {
  let harness: TopUpHarness;

  before(async () => {
    harness = await openTopUpHarness({
      FIRST_ASK_MS: '3600000',
      RECONCILE_REVIEW_MS: '300,1000,3000,15000',
    });
    await harness.startWorker();
  });
  after(() => harness.close());

  it('is listed until the second payment is refunded, though the credited one was', async () => {
    const { topUp, credited, second } = await paidTwice(21);
    await harness.stripe.refunds.create({ payment_intent: credited });
    await harness.statusBecomes(topUp, 'refunded');
    const expected = { kind: 'paid_twice', processor: 42, ledger: 21, credited };
    assert.deepEqual(await differencesOf(topUp), [expected]);
    assert.equal(
      await doctorSays(),
      `Stripe has more than one payment: Stripe 42000000, ledger 21000000 (${credited} (credited), ${second})`,
    );

    await harness.stripe.refunds.create({ payment_intent: second });
    assert.deepEqual(await differencesOf(topUp), []);
    assert.equal(await doctorSays(), '');
  });

  it('is listed though parts of both payments were refunded, with the rest of the second one', async () => {
    const { topUp, credited, second } = await paidTwice(20);
    for (const payment_intent of [credited, second])
      await harness.stripe.refunds.create({ payment_intent, amount: 1_000 });
    await harness.statusBecomes(topUp, 'partially_refunded');
    const expected = { kind: 'paid_twice', processor: 30, ledger: 20, credited };
    assert.deepEqual(await differencesOf(topUp), [expected]);
    await harness.stripe.refunds.create({ payment_intent: second });
    assert.deepEqual(await differencesOf(topUp), []);
  });

  it('is listed by the command with its payments, and which of them is credited', async () => {
    const { topUp, credited, second } = await paidTwice(9);
    const expected = { kind: 'paid_twice', processor: 18, ledger: 9, credited };
    assert.deepEqual(await differencesOf(topUp), [expected]);
    const payments = `${credited} (credited), ${second}`;
    await assert.rejects(
      farebox(['reconcile'], { env: harness.env }),
      ({ stdout }: { stdout: string }) => {
        assert.ok(stdout.includes(`(processor $18.00, ledger $9.00; ${payments})`), stdout);
        return true;
      },
    );
    await assert.rejects(
      farebox(['reconcile', '--json'], { env: harness.env }),
      ({ stdout }: { stdout: string }) => {
        const { differences } = JSON.parse(stdout) as { differences: object[] };
        assert.partialDeepStrictEqual(differences, [
          { paymentIntentIds: [credited, second], creditedPaymentIntentId: credited },
        ]);
        return true;
      },
    );
    await harness.stripe.refunds.create({ payment_intent: second });
    assert.deepEqual(await differencesOf(topUp), []);
  });

  /** A checkout that was paid and credited, and a payment of as much that somebody made for it by hand. */
  async function paidTwice(dollars: number) {
    const checkout = await harness.checkout(await harness.newConsumer(), dollars);
    await harness.pay(checkout.sessionUrl);
    await harness.statusBecomes(checkout, 'completed');
    const topUp = await harness.topUp(checkout.id);
    const second: Stripe.PaymentIntent = await harness.stripe.paymentIntents.create({
      amount: dollars * 100,
      currency: 'usd',
      confirm: true,
      payment_method: 'pm_card_visa',
      allowed_payment_method_types: ['card'],
      metadata: { top_up_id: wireId('topUp', topUp.id) },
    });
    return { topUp, credited: topUp.paymentIntentId ?? '', second: second.id };
  }

  /** After a reconciliation, in dollars. */
  async function differencesOf(topUp: TopUp) {
    await harness.reconcile();
    const all = await listDifferences(harness.database);
    return all
      .filter(({ topUpId }) => topUpId === topUp.id)
      .map((found) => ({
        kind: found.kind,
        processor: dollarsOf(found.processorMicros),
        ledger: dollarsOf(found.ledgerMicros),
        credited: found.creditedPaymentIntentId,
      }));
  }

  /** What it finds about top-ups, a line each. */
  async function doctorSays(): Promise<string> {
    const found = await examineProcessor(harness.database, harness.stripe);
    return found.map(({ detail }) => detail).join('\n');
  }
});
