/**
 * Many top-ups at once, half through checkout and half from saved cards, while their webhooks come twice, in
 * any order, and every tenth never: each is credited once. TOP_UPS sets how many: 500 take some minutes.
 */
import assert from 'node:assert/strict';
import { examineProcessor } from '../../../src/stripe/examine-processor.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { listTopUpsOf } from '../../../src/store/top-ups/top-ups.ts';
import { until } from '../../support/stack.ts';
import {
  openTopUpHarness,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

const COUNT = Number(process.env['TOP_UPS'] ?? 30);
/** For each consumer: as many direct ones of $2.00 as checkouts of $5.00. */
const PAIRS = 5;

describe('many top-ups', () => {
  let harness: TopUpHarness;
  const told = { twice: 0, never: 0 };
  /** The events in the order of their first delivery. */
  const events: string[] = [];

  before(async () => {
    harness = await openTopUpHarness({}, (webhook) => {
      const { id } = JSON.parse(webhook) as { id: string };
      if (!events.includes(id)) events.push(id);
      // Every delivery of the event.
      const isLost = events.indexOf(id) % 10 === 0;
      told[isLost ? 'never' : 'twice'] += 1;
      return isLost;
    });
    await harness.control('webhooks', { duplicate: 2, shuffle: true });
    await harness.startWorker();
  });
  after(async () => {
    await harness?.close();
  });

  it('at once are each credited once', async () => {
    const consumers = await Promise.all(
      Array.from({ length: COUNT / PAIRS / 2 }, () => harness.newConsumer()),
    );
    await Promise.all(
      consumers.flatMap((consumer) =>
        Array.from({ length: PAIRS }, (_, n) => [
          finished(consumer, 'direct', 2, `direct-${n}`),
          finished(consumer, 'checkout', 5, `checkout-${n}`),
        ]).flat(),
      ),
    );
    for (const consumer of consumers) {
      const topUps = await listTopUpsOf(harness.database, consumer.consumerId, { limit: 100 });
      assert.equal(topUps.length, 2 * PAIRS);
      assert.equal((await harness.books(consumer)).credited, 7_000_000 * PAIRS);
    }
    assert.ok(told.never > 0 && told.twice > told.never, JSON.stringify(told));
    assert.deepEqual(await examineLedger(harness.database), []);
    assert.deepEqual(await examineProcessor(harness.database, harness.stripe), []);
  });

  /** Like a client: sent again, with its key, while the answer is that nothing happened. */
  async function finished(
    consumer: Consumer,
    method: 'direct' | 'checkout',
    dollars: number,
    key: string,
  ): Promise<void> {
    const waiting = { timeoutMs: 500_000, intervalMs: 500 };
    const topUp = await until(async () => {
      const result = await harness.request(consumer, method, dollars, key);
      return 'topUp' in result && result.topUp;
    }, waiting);
    if (method === 'checkout') {
      const url = await until(async () => (await harness.topUp(topUp.id)).sessionUrl, waiting);
      await harness.pay(url);
    }
    await until(async () => (await harness.topUp(topUp.id)).status === 'completed', waiting);
  }
});
