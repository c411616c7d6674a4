/** Stripe's queue: calls are paced, and while Stripe hangs on many checkouts, payments are credited as usual. */
import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { until } from '../../support/stack.ts';
import {
  openTopUpHarness,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

/** More than the 100 steps that a queue of Temporal runs at once by default. */
const HANGING = 200;
const STEPS_PER_SECOND = 40;

describe('while Stripe hangs on many checkouts', function () {
  this.timeout(180_000);
  let harness: TopUpHarness;
  let aloneMs: number;
  let besidesMs: number;
  let allHangAfterMs: number;
  let paidTopUpId: string;

  before(async () => {
    harness = await openTopUpHarness({
      STRIPE_STEPS_PER_SECOND: String(STEPS_PER_SECOND),
      TOP_UP_ANSWER_MS: '100',
    });
    await harness.startWorker();
    const consumer = await harness.newConsumer();
    const checkouts = [];
    for (let n = 0; n < 6; n += 1) checkouts.push(await harness.checkout(consumer, 5));
    aloneMs = await medianMs(checkouts.slice(0, 3));
    const times = 5 * HANGING;
    const path = '/v1/checkout/sessions';
    await harness.control('faults', { method: 'POST', path, kind: 'delay', ms: 60_000, times });
    const consumers = await Promise.all(Array.from({ length: 10 }, () => harness.newConsumer()));
    const startMs = performance.now();
    const requests = Array.from({ length: HANGING }, (_, n) =>
      harness.request(consumers[n % 10] as Consumer, 'checkout', 5),
    );
    await until(async () => times - ((await harness.faults())[0]?.times ?? 0) >= HANGING);
    allHangAfterMs = performance.now() - startMs;
    besidesMs = await medianMs(checkouts.slice(3));
    paidTopUpId = checkouts[5]!.id;
    await Promise.all(requests);
  });
  after(async () => {
    await harness?.close();
  });

  it('calls to it start no faster than the setting allows', () => {
    // Temporal lets the steps of the first second start at once.
    const earliestMs = (HANGING / STEPS_PER_SECOND - 1) * 1_000;
    assert.ok(allHangAfterMs >= earliestMs, `${allHangAfterMs} ms`);
  });

  it('a payment is credited about as quickly as otherwise', () => {
    // Nine seconds for a busy machine; steps that wait for a slot of Stripe's take at least ten.
    assert.ok(besidesMs <= 2 * aloneMs + 9_000, `${besidesMs} ms, alone ${aloneMs} ms`);
  });

  it('the steps that credit a payment do not wait in a queue', async () => {
    const { events } = await harness.workflow(paidTopUpId).fetchHistory();
    for (const step of ['askProcessor', 'creditTopUp']) {
      const waitedMs = queuedMs(events ?? [], step);
      assert.ok(waitedMs < 9_000, `${step} waited ${waitedMs} ms`);
    }
  });

  async function medianMs(checkouts: readonly TopUp[]): Promise<number> {
    const tookMs = [];
    for (const topUp of checkouts) tookMs.push(await paidToCreditedMs(topUp));
    return tookMs.toSorted((a, b) => a - b)[1]!;
  }

  async function paidToCreditedMs(topUp: { id: string; sessionUrl: string | null }) {
    const startMs = performance.now();
    await harness.pay(topUp.sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
    return performance.now() - startMs;
  }
});

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
type Event = NonNullable<History['events']>[number];

/** From scheduling the activity to its start. */
function queuedMs(events: readonly Event[], activity: string): number {
  const scheduled = events.findLast(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === activity,
  );
  const started = events.find(
    (event) =>
      Number(event.activityTaskStartedEventAttributes?.scheduledEventId) ===
      Number(scheduled?.eventId),
  );
  assert.ok(scheduled && started, activity);
  return timeMs(started) - timeMs(scheduled);
}

function timeMs({ eventTime }: Event): number {
  return Number(eventTime?.seconds) * 1_000 + (eventTime?.nanos ?? 0) / 1e6;
}
