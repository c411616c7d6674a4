/** From the notice that a charge left to the end of an automatic top-up, and what becomes of the next one. */
import assert from 'node:assert/strict';
import { asMicros } from '../../src/domain/money.ts';
import { findAutoTopUp, setAutoTopUp } from '../../src/store/auto-top-ups.ts';
import { creditManually } from '../../src/store/credits.ts';
import { listTopUpsOf, type TopUp } from '../../src/store/top-ups.ts';
import { newDraft, post } from '../store/charge-drafts.ts';
import { until, type Server } from '../support/stack.ts';
import { openDesk, type Consumer, type TopUpDesk } from './top-up-desk.ts';

const DOLLAR = 1_000_000;

describe('an automatic top-up', () => {
  let desk: TopUpDesk;
  let worker: Server;

  before(async () => {
    desk = await openDesk({ SAVE_TEST_CARD: 'false', AUTO_TOP_UP_RETRY_MS: '200' });
    worker = await desk.startWorker();
  });

  after(async () => {
    await worker.stop();
    await desk.close();
  });

  it('goes on with the next charge when its amount did not suffice', async () => {
    const consumer = await newConsumer('pm_card_visa', { threshold: 35 });
    await charge(consumer);
    await until(async () => (await automatic(consumer))[0]?.status === 'completed');
    await charge(consumer);
    await until(async () => (await automatic(consumer))[1]?.status === 'completed');
    await charge(consumer);
    await until(async () => (await desk.books(consumer)).credited === 50 * DOLLAR);
    assert.equal((await automatic(consumer)).length, 2);
  });

  it('says what it is in the Temporal UI', async () => {
    const consumer = await newConsumer('pm_card_visa', { threshold: 10 });
    await charge(consumer);
    const topUp = await until(async () => (await automatic(consumer))[0]);
    await until(async () => (await desk.topUp(topUp.id)).status === 'completed');
    const { staticSummary } = await desk.workflow(topUp.id).describe();
    assert.equal(await staticSummary(), 'Top-up of 20 dollars, automatic');
  });

  it('is tried three times when the card is declined, then turns itself off and says so', async () => {
    const consumer = await newConsumer('pm_card_chargeCustomerFail', { threshold: 10 });
    for (const tries of [1, 2, 3]) {
      await charge(consumer);
      await until(async () => {
        const topUps = await automatic(consumer);
        return topUps.length === tries && topUps.every(({ status }) => status === 'failed');
      });
    }
    const found = await findAutoTopUp(desk.database, consumer);
    assert.deepEqual([found?.status, found?.reason], ['off', 'card_declined']);
    const topUps = await automatic(consumer);
    assert.deepEqual(
      new Set(topUps.map(({ failureCode }) => failureCode)),
      new Set(['card_declined']),
    );
    const [first, , last] = topUps;
    const said = async (topUp: TopUp | undefined) => {
      const handle = desk.workflow(topUp?.id ?? '');
      await handle.result();
      return JSON.stringify(await handle.query('__temporal_workflow_metadata'));
    };
    assert.match(await said(first), /leave the card alone for a while/);
    assert.match(await said(last), /turned themselves off/);
    await charge(consumer);
    await until(async () => (await desk.waitingNotices()) === 0);
    assert.equal((await automatic(consumer)).length, 3);
  });

  /** With 10 dollars and this card, topping up 20 dollars at a time. */
  async function newConsumer(
    card: string,
    { threshold }: { threshold: number },
  ): Promise<Consumer> {
    const consumer = await desk.newConsumer();
    const failed = await desk.request(consumer, 'direct', 1);
    assert.equal(failed.kind, 'failed');
    await desk.saveCard(consumer, card);
    await desk.database.transaction((tx) =>
      creditManually(tx, [{ ...consumer, amountMicros: asMicros(10 * DOLLAR) }]),
    );
    await setAutoTopUp(desk.database, consumer, {
      thresholdMicros: asMicros(threshold * DOLLAR),
      amountMicros: asMicros(20 * DOLLAR),
      ceilingMicros: asMicros(1_000 * DOLLAR),
    });
    return consumer;
  }

  async function charge(consumer: Consumer): Promise<void> {
    const [outcome] = await post(desk.database, [newDraft(consumer, DOLLAR)]);
    assert.equal(outcome?.kind, 'posted');
  }

  /** Oldest first. */
  async function automatic({ consumerId }: Consumer): Promise<readonly TopUp[]> {
    const topUps = await listTopUpsOf(desk.database, consumerId, { limit: 100 });
    return topUps.filter((topUp) => topUp.automatic).toReversed();
  }
});
