/**
 * Anyone with access to Temporal can start any step with any id. Each step is started here on a real worker,
 * by hand, in every state of its row: no money moves that the processor does not show, and no row says what
 * it did not show.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { createEnsurePartitionsActivities } from '../../../activities/ensure-partitions.ts';
import { createExpireHoldsActivities } from '../../../activities/expire-holds.ts';
import { createReconcileTopUpsActivities } from '../../../activities/reconcile-top-ups.ts';
import { createReversalActivities } from '../../../activities/reversals.ts';
import { createRollUpEarningsActivities } from '../../../activities/roll-up-earnings.ts';
import { createTopUpPaymentActivities } from '../../../activities/top-up-payments.ts';
import { createTopUpActivities } from '../../../activities/top-ups.ts';
import { wireId } from '../../../src/domain/ids.ts';
import type { Verdict } from '../../../src/domain/verdict.ts';
import { row, sql } from '../../../src/store/database.ts';
import { admitTopUp } from '../../../src/store/top-ups/admit-top-up.ts';
import { claimTopUp } from '../../../src/store/top-ups/claim-top-up.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { creditManually } from '../../../src/store/top-ups/credit-top-up.ts';
import { changeConsent } from '../../../src/store/top-ups/monthly-ceiling.ts';
import { findProcessorCustomer } from '../../../src/store/top-ups/processor-customers.ts';
import { requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import { expire, fail } from '../../support/evidence.ts';
import { capturable } from '../../support/hold-drafts.ts';
import { until } from '../../support/stack.ts';
import { asMicros } from '../../../src/domain/money.ts';
import {
  openTopUpHarness,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

const DECLINED = { code: 'card_declined', message: 'declined' };
const standingRow = row(Type.Object({ standing: Type.String() }));

/** Each with the arguments of its workflow, or with false ones. */
const STEPS: readonly [name: string, ...input: unknown[]][] = [
  ['creditTopUp'],
  ['expireTopUp'],
  ['failTopUp', DECLINED],
  ['failTopUp', { code: 'authentication_required', message: 'a lie' }],
  ['openCheckout'],
  ['chargeSavedCard'],
  ['askProcessor'],
  ['settleTopUp'],
  ['readTopUp'],
  // Last: a direct top-up that is taken up may be paid.
  ['openTopUp'],
];

/** The names of all steps but those of grants and invocations, which are tried in their own file. */
function moneySteps(): string[] {
  const nothing = {} as never;
  return [
    createTopUpActivities(nothing),
    createTopUpPaymentActivities(nothing),
    createReversalActivities(nothing),
    createRollUpEarningsActivities(nothing),
    createExpireHoldsActivities(nothing),
    createEnsurePartitionsActivities(nothing),
    createReconcileTopUpsActivities(nothing),
  ].flatMap((steps) => Object.keys(steps));
}

describe('a step of a top-up that is started by hand', () => {
  let harness: TopUpHarness;

  before(async () => {
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000' });
    await harness.startWorker();
    await harness.control('webhooks', { mode: 'drop' });
  });

  after(async () => {
    await harness?.close();
  });

  /** Runs the step on the worker, once. */
  async function execute(name: string, ...args: unknown[]): Promise<unknown> {
    return harness.temporal.client.activity.execute(name, {
      id: randomUUID(),
      taskQueue: harness.temporal.taskQueue,
      args,
      startToCloseTimeout: '3m',
      retry: { maximumAttempts: 1 },
    });
  }

  /** Its error does not matter. */
  async function start(name: string, ...args: unknown[]): Promise<'done' | 'refused'> {
    return execute(name, ...args).then(
      () => 'done' as const,
      () => 'refused' as const,
    );
  }

  async function newRow(method: 'checkout' | 'direct', consumer: Consumer): Promise<TopUp> {
    const order = { ...consumer, method, amountMicros: asMicros(25_000_000) };
    return harness.database.transaction(async (tx) => {
      const admitted = await admitTopUp(tx, order);
      assert.ok(admitted.kind === 'admitted', admitted.kind);
      // The worker's relay would start its workflow five seconds later, which charges the card.
      await tx.query(sql.typeAlias('nothing')`
        update farebox.outbox set next_attempt_at = now() + interval '1 hour'
        where subject_id = ${admitted.topUp.id}
      `);
      return admitted.topUp;
    });
  }

  async function openedRow(method: 'checkout' | 'direct', consumer: Consumer): Promise<TopUp> {
    const { id } = await newRow(method, consumer);
    return (await claimTopUp(harness.database, id))!;
  }

  /** As if it had been requested earlier. */
  async function age({ id }: TopUp, minutes: number): Promise<void> {
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = now() - ${minutes}::int8 * interval '1 minute' where id = ${id}
    `);
  }

  async function unpaidCheckout(consumer: Consumer): Promise<TopUp> {
    const topUp = await harness.checkout(consumer, 25);
    await harness.workflow(topUp.id).terminate();
    return topUp;
  }

  /** None of these has a payment. */
  const UNPAID: Readonly<Record<string, (consumer: Consumer) => Promise<TopUp>>> = {
    'a checkout that was not taken up': (consumer) => newRow('checkout', consumer),
    'a direct top-up that was not taken up': (consumer) => newRow('direct', consumer),
    'a checkout without a session': (consumer) => openedRow('checkout', consumer),
    'a checkout that can be paid': unpaidCheckout,
    'an expired checkout': async (consumer) => {
      const topUp = await unpaidCheckout(consumer);
      await harness.stripe.checkout.sessions.expire(topUp.sessionId!);
      await expire(harness.database, topUp.id);
      return topUp;
    },
    'a direct top-up that failed': async (consumer) => {
      const topUp = await openedRow('direct', consumer);
      await fail(harness.database, topUp.id, DECLINED, 1_000);
      return topUp;
    },
  };

  /** All of the money: balance, movements, lots, holds; and the status with its reason. */
  async function standingOf(topUp: TopUp): Promise<string> {
    return harness.database.oneFirst(sql.type(standingRow)`
      select concat_ws(' ', t.status, t.failure_code, c.credited_micros, c.spent_micros,
        c.held_micros, c.refunded_micros,
        (select count(*) from farebox.movements m where m.consumer_id = c.id),
        (select count(*) from farebox.reversals r where r.consumer_id = c.id)) as standing
      from farebox.top_ups t join farebox.consumers c on c.ledger = t.ledger and c.id = t.consumer_id
      where t.id = ${topUp.id}
    `);
  }

  for (const [state, prepare] of Object.entries(UNPAID)) {
    it(`moves no money of ${state}, and changes nothing`, async () => {
      const topUp = await prepare(await harness.newConsumer());
      for (const [name, ...input] of STEPS) {
        const before = await standingOf(topUp);
        await start(name, wireId('topUp', topUp.id), ...input);
        assert.equal(await standingOf(topUp), before, name);
        assert.deepEqual(await harness.paymentsOf(topUp), [], name);
      }
    });
  }

  it('charges no card for a checkout, nor for a direct top-up that may still be withdrawn', async () => {
    const consumer = await harness.newConsumer();
    for (const topUp of [await unpaidCheckout(consumer), await newRow('direct', consumer)]) {
      assert.equal(await start('chargeSavedCard', wireId('topUp', topUp.id)), 'refused');
      assert.deepEqual(await harness.paymentsOf(topUp), []);
    }
  });

  it('opens no second way to pay a direct top-up', async () => {
    const topUp = await openedRow('direct', await harness.newConsumer());
    assert.equal(await start('openCheckout', wireId('topUp', topUp.id)), 'refused');
    assert.equal((await harness.topUp(topUp.id)).sessionId, null);
  });

  it('cancels, and then expires, only a payment that the processor shows as over', async () => {
    const topUp = await unpaidCheckout(await harness.newConsumer());
    const id = wireId('topUp', topUp.id);
    await harness.pay(topUp.sessionUrl);
    await start('cancelPayment', id);
    assert.equal(await start('expireTopUp', id), 'refused');
    assert.equal((await harness.topUp(topUp.id)).status, 'pending');
    assert.equal(await start('creditTopUp', id), 'done');
  });

  it('charges no card once a cancel is recorded, and changes nothing about it, however late it comes', async () => {
    for (const minutes of [0, 16]) {
      const topUp = await openedRow('direct', await harness.newConsumer());
      const id = wireId('topUp', topUp.id);
      await age(topUp, minutes);
      assert.equal(await start('cancelPayment', id), 'done');
      assert.deepEqual(await execute('chargeSavedCard', id), { kind: 'expired' });
      assert.deepEqual(await harness.paymentsOf(topUp), []);
      assert.equal(await start('expireTopUp', id), 'done');
      assert.equal((await harness.topUp(topUp.id)).status, 'expired');
    }
  });

  it('opens no checkout once a cancel is recorded, and reads it as canceled', async () => {
    const topUp = await openedRow('checkout', await harness.newConsumer());
    const id = wireId('topUp', topUp.id);
    assert.equal(await start('cancelPayment', id), 'done');
    assert.equal(await start('openCheckout', id), 'done');
    assert.equal((await harness.topUp(topUp.id)).sessionId, null);
    assert.deepEqual(await execute('askProcessor', id), { kind: 'expired' });
  });

  it('cancels a checkout, which reconciliation expires when no workflow is left', async () => {
    const topUp = await unpaidCheckout(await harness.newConsumer());
    assert.deepEqual(await execute('cancelPayment', wireId('topUp', topUp.id)), {
      kind: 'expired',
    });
    assert.equal((await harness.topUp(topUp.id)).status, 'pending');
    await harness.reconcile();
    await harness.statusBecomes(topUp, 'expired');
  });

  it('charges no card once the owner has withdrawn the consent, though the top-up was accepted before', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await openedRow('direct', consumer);
    const none = { ceilingMicros: null, givenBy: 'owner' } as const;
    await changeConsent(harness.database, consumer.consumerId, none);
    const id = wireId('topUp', topUp.id);
    const verdict = (await execute('chargeSavedCard', id)) as Verdict;
    assert.ok(verdict.kind === 'failed', verdict.kind);
    await execute('failTopUp', id, verdict.failure);
    assert.equal((await harness.topUp(topUp.id)).failureCode, 'consent_required');
    assert.deepEqual(await harness.paymentsOf(topUp), []);
  });

  it('stops charging a card after five declines within an hour, even for top-ups that were admitted before', async () => {
    const consumer = await harness.newConsumer();
    const paid = await openedRow('direct', consumer);
    for (const step of ['chargeSavedCard', 'creditTopUp']) {
      assert.equal(await start(step, wireId('topUp', paid.id)), 'done');
    }
    await harness.saveCard(consumer, 'pm_card_chargeCustomerFail');
    const topUps = await Promise.all(
      Array.from({ length: 7 }, () => openedRow('direct', consumer)),
    );
    const codes: (string | undefined)[] = [];
    for (const { id } of topUps) {
      const verdict = (await execute('chargeSavedCard', wireId('topUp', id))) as Verdict;
      codes.push(verdict.kind === 'failed' ? verdict.failure.code : verdict.kind);
    }
    const declined = Array.from({ length: 5 }, () => 'card_declined');
    assert.deepEqual(codes, [...declined, 'declined_too_often', 'declined_too_often']);
    const last = await harness.topUp(topUps[6]!.id);
    assert.equal(last.paymentIntentId, null);
    assert.equal(await start('failTopUp', wireId('topUp', last.id), DECLINED), 'done');
    assert.equal((await harness.topUp(last.id)).failureCode, 'declined_too_often');
  });

  it('credits a payment that the processor shows as paid, once, for any caller', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await unpaidCheckout(consumer);
    const id = wireId('topUp', topUp.id);
    await harness.pay(topUp.sessionUrl);
    assert.equal(await start('failTopUp', id, DECLINED), 'refused');
    await Promise.all([start('creditTopUp', id), start('creditTopUp', id)]);
    assert.equal(await start('creditTopUp', id), 'done');
    assert.deepEqual(await harness.books(consumer), {
      credited: 25_000_000,
      movements: 1,
      lots: 1,
      lotsMicros: 25_000_000,
    });
  });

  it('takes nothing from a credited top-up, and credits nothing twice', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await unpaidCheckout(consumer);
    await harness.pay(topUp.sessionUrl);
    assert.equal(await start('creditTopUp', wireId('topUp', topUp.id)), 'done');
    const before = await standingOf(topUp);
    for (const [name, ...input] of [...STEPS, ['cancelPayment'] as const]) {
      await start(name, wireId('topUp', topUp.id), ...input);
      assert.equal(await standingOf(topUp), before, name);
    }
    assert.equal((await harness.paymentsOf(topUp)).length, 1);
  });

  it('ignores the caller’s failure, and records the one that the processor shows', async () => {
    const consumer = await harness.newConsumer();
    const topUp = await openedRow('direct', consumer);
    const id = wireId('topUp', topUp.id);
    await start('chargeSavedCard', id);
    assert.equal((await harness.paymentsOf(topUp)).length, 1);
    assert.equal(await start('failTopUp', id, DECLINED), 'refused');
    assert.equal(await start('creditTopUp', id), 'done');
  });

  it('keeps a decline, and the card that its bank refused, when a charge is repeated after 15 minutes', async () => {
    const consumer = await harness.newConsumer();
    const { topUp, cardId } = await declinedForEver(consumer);
    await age(topUp, 16);
    assert.equal(await start('chargeSavedCard', wireId('topUp', topUp.id)), 'done');
    const { seenFailureCode, refusedCardId } = await harness.topUp(topUp.id);
    assert.equal(seenFailureCode, 'card_declined');
    assert.equal(refusedCardId, cardId);
    const next = await openedRow('direct', consumer);
    assert.equal(await start('chargeSavedCard', wireId('topUp', next.id)), 'done');
    assert.equal((await harness.topUp(next.id)).seenVerdict, 'failed');
    assert.equal((await harness.topUp(next.id)).paymentIntentId, null);
    for (const { id } of [topUp, next]) await start('failTopUp', wireId('topUp', id), DECLINED);
  });

  it('reads a declined payment as failed, even after the top-up has failed', async () => {
    const { topUp } = await declinedForEver(await harness.newConsumer());
    const id = wireId('topUp', topUp.id);
    const asked = async () => ((await execute('askProcessor', id)) as Verdict).kind;
    assert.equal(await asked(), 'failed');
    assert.equal(await start('failTopUp', id, DECLINED), 'done');
    assert.equal((await harness.topUp(topUp.id)).status, 'failed');
    assert.equal(await asked(), 'failed');
  });

  /** Closed at the processor and recorded, but its workflow does not know it yet. */
  async function declinedForEver(consumer: Consumer): Promise<{ topUp: TopUp; cardId: string }> {
    const paid = await openedRow('direct', consumer);
    assert.equal(await start('chargeSavedCard', wireId('topUp', paid.id)), 'done');
    assert.equal(await start('creditTopUp', wireId('topUp', paid.id)), 'done');
    const customer = (await findProcessorCustomer(harness.database, consumer.accountId)) ?? '';
    const [card] = (await harness.stripe.paymentMethods.list({ customer })).data;
    assert.ok(card);
    await harness.control(`cards/${card.id}/lose`);
    const { id } = await openedRow('direct', consumer);
    assert.equal(await start('chargeSavedCard', wireId('topUp', id)), 'done');
    const topUp = await harness.topUp(id);
    const intent = await harness.stripe.paymentIntents.retrieve(topUp.paymentIntentId ?? '');
    assert.equal(intent.status, 'canceled');
    assert.equal(topUp.refusedCardId, card.id);
    return { topUp, cardId: card.id };
  }

  /** Paid at the processor and credited, and then what has become of it. */
  async function creditedTopUp(consumer: Consumer): Promise<TopUp> {
    const topUp = await unpaidCheckout(consumer);
    await harness.pay(topUp.sessionUrl);
    await start('creditTopUp', wireId('topUp', topUp.id));
    return harness.topUp(topUp.id);
  }

  const refundsOf = async ({ paymentIntentId }: TopUp): Promise<number> =>
    paymentIntentId === null
      ? 0
      : (await harness.stripe.refunds.list({ payment_intent: paymentIntentId })).data.length;

  async function refunded(consumer: Consumer, micros: number | undefined): Promise<TopUp> {
    const topUp = await creditedTopUp(consumer);
    const amount = micros === undefined ? undefined : asMicros(micros);
    assert.equal((await requestRefund(harness.database, topUp.id, amount)).kind, 'requested');
    // The outbox starts the workflow, which makes the refund.
    await until(async () => (await refundsOf(topUp)) === 1);
    await until(() => harness.hasEnded(topUp));
    return harness.topUp(topUp.id);
  }

  async function disputed(consumer: Consumer, end?: 'won' | 'lost'): Promise<TopUp> {
    const topUp = await creditedTopUp(consumer);
    await harness.control('disputes', { payment_intent: topUp.paymentIntentId });
    if (end) {
      const { data } = await harness.stripe.disputes.list({
        payment_intent: topUp.paymentIntentId ?? '',
      });
      await harness.control(`disputes/${data[0]?.id}/close`, { status: end });
    }
    assert.equal(await start('settleTopUp', wireId('topUp', topUp.id)), 'done');
    return harness.topUp(topUp.id);
  }

  /** With the status that shows that it was prepared. */
  const AFTERWARDS: Readonly<
    Record<string, readonly [TopUp['status'], (consumer: Consumer) => Promise<TopUp>]>
  > = {
    'a top-up that was refunded in part': [
      'partially_refunded',
      (consumer) => refunded(consumer, 10_000_000),
    ],
    'a top-up that was refunded in full': ['refunded', (consumer) => refunded(consumer, undefined)],
    'a top-up that is disputed': ['disputed', (consumer) => disputed(consumer)],
    'a top-up whose dispute was won': ['completed', (consumer) => disputed(consumer, 'won')],
    'a top-up whose dispute was lost': ['charged_back', (consumer) => disputed(consumer, 'lost')],
    'a top-up that an operator credited': [
      'completed',
      async (consumer) => {
        const amountMicros = asMicros(25_000_000);
        const [id = ''] = await harness.database.transaction((tx) =>
          creditManually(tx, [{ ...consumer, amountMicros }]),
        );
        return harness.topUp(id);
      },
    ],
  };

  for (const [state, [status, prepare]] of Object.entries(AFTERWARDS)) {
    it(`moves no money of ${state}, here or at the processor`, async () => {
      const topUp = await prepare(await harness.newConsumer());
      assert.equal(topUp.status, status);
      const before = await standingOf(topUp);
      const payments = (await harness.paymentsOf(topUp)).length;
      const refunds = await refundsOf(topUp);
      for (const [name, ...input] of [...STEPS, ['cancelPayment'] as const]) {
        await start(name, wireId('topUp', topUp.id), ...input);
        assert.equal(await standingOf(topUp), before, name);
        assert.equal((await harness.paymentsOf(topUp)).length, payments, name);
        assert.equal(await refundsOf(topUp), refunds, name);
      }
    });
  }

  it('makes an operator’s refund once, under concurrent starts', async () => {
    const topUp = await creditedTopUp(await harness.newConsumer());
    await requestRefund(harness.database, topUp.id, asMicros(5_000_000));
    const id = wireId('topUp', topUp.id);
    await Promise.all([start('settleTopUp', id), start('settleTopUp', id)]);
    await until(async () => (await harness.topUp(topUp.id)).status === 'partially_refunded');
    assert.equal(await refundsOf(topUp), 1);
  });

  /** Everything that is money: of the ledger as a whole, as sums and counts. */
  const WHOLE_LEDGER = sql.type(standingRow)`
    select concat_ws(' ',
      (select md5(string_agg(concat_ws(':', id, credited_micros, spent_micros, held_micros,
        refunded_micros, reserved_micros), ',' order by id)) from farebox.consumers),
      (select concat_ws(':', 'charges', count(*), sum(amount_micros)) from farebox.charges),
      (select concat_ws(':', 'movements', count(*), sum(amount_micros)) from farebox.movements),
      (select concat_ws(':', 'reversals', count(*), sum(held_micros), sum(debt_micros))
        from farebox.reversals),
      (select concat_ws(':', 'holds', count(*), sum(held_micros), sum(state)) from farebox.holds),
      (select md5(string_agg(concat_ws(':', id, status), ',' order by id)) from farebox.top_ups),
      coalesce((select sum(amount_micros) from farebox.earnings where span = 'all'), 0)
        + coalesce((select sum(amount_micros) from farebox.earnings_tail), 0)
    ) as standing
  `;

  it('changes no sum of the whole ledger by any step that is about no one top-up', async () => {
    const consumer = await harness.newConsumer();
    await harness.topUpAutomatically(consumer, 1);
    await harness.charge(consumer);
    await capturable(harness.database, consumer, 1_000_000);
    const before = await harness.database.oneFirst(WHOLE_LEDGER);
    const walk = { since: 0, until: 9e9, after: null };
    const steps: readonly [name: string, ...input: unknown[]][] = [
      ['rollUp'],
      ['ensurePartitions'],
      ['sweepHolds'],
      ['planWalk'],
      ['examineUnsettled', null],
      ['reviewDifferences', null],
      ['walkPage', { ...walk, list: 'balanceTransactions' }],
      ['walkPage', { ...walk, list: 'refunds' }],
      ['walkPage', { ...walk, list: 'disputes' }],
      ['endWalk', 0],
    ];
    for (const [name, ...input] of steps) {
      assert.equal(await start(name, ...input), 'done', name);
      assert.equal(await harness.database.oneFirst(WHOLE_LEDGER), before, name);
    }
    // Steps with an id begin after it; made-up input is refused or finds nothing.
    for (const name of ['examineUnsettled', 'reviewDifferences', 'endWalk', 'walkPage']) {
      await start(name, 'made up');
      assert.equal(await harness.database.oneFirst(WHOLE_LEDGER), before, name);
    }
    const tried = new Set([...STEPS, ...steps].map(([name]) => name));
    assert.deepEqual(
      moneySteps().filter((name) => !tried.has(name)),
      ['cancelPayment'],
    );
  });

  it('walks only the processor’s lists, and no further than now', async () => {
    const walk = { since: 0, until: 9e9, after: null };
    assert.equal(await start('walkPage', { ...walk, list: 'customers' }), 'refused');
    assert.equal(await start('endWalk', 9e9), 'done');
    const ahead = await harness.database.oneFirst(
      sql.type(
        row(Type.Object({ isAhead: Type.Boolean() })),
      )`select walked_until > now() + interval '1 minute' as "isAhead" from farebox.reconciliation`,
    );
    assert.equal(ahead, false);
  });
});
