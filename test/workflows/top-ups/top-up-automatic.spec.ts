/** From the notice that a charge left to the end of an automatic top-up, and what becomes of the next one. */
import assert from 'node:assert/strict';
import { findAutoTopUp } from '../../../src/store/top-ups/auto-top-ups.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { until } from '../../support/stack.ts';
import { openDesk, type Consumer, type TopUpDesk } from '../../support/top-up-desk.ts';

describe('an automatic top-up', () => {
  let desk: TopUpDesk;

  before(async () => {
    desk = await openDesk({ SAVE_TEST_CARD: 'false', AUTO_TOP_UP_RETRY_MS: '200' });
    await desk.startWorker();
  });

  after(async () => {
    await desk.close();
  });

  it('goes on with the next charge when its amount did not suffice', async () => {
    const consumer = await newConsumer('pm_card_visa', { threshold: 35 });
    await desk.charge(consumer);
    await until(async () => (await desk.automaticTopUps(consumer))[0]?.status === 'completed');
    await desk.charge(consumer);
    await until(async () => (await desk.automaticTopUps(consumer))[1]?.status === 'completed');
    await desk.charge(consumer);
    await until(async () => (await desk.books(consumer)).credited === 50_000_000);
    assert.equal((await desk.automaticTopUps(consumer)).length, 2);
  });

  it('says what it is in the Temporal UI', async () => {
    const consumer = await newConsumer('pm_card_visa', { threshold: 10 });
    await desk.charge(consumer);
    const topUp = await until(async () => (await desk.automaticTopUps(consumer))[0]);
    await until(async () => (await desk.topUp(topUp.id)).status === 'completed');
    const { staticSummary } = await desk.workflow(topUp.id).describe();
    assert.equal(await staticSummary(), 'Top-up of 20 dollars, automatic');
  });

  it('is tried three times when the card is declined, then turns itself off and says so', async () => {
    const consumer = await newConsumer('pm_card_chargeCustomerFail', { threshold: 10 });
    for (const tries of [1, 2, 3]) {
      await desk.charge(consumer);
      await until(async () => {
        const topUps = await desk.automaticTopUps(consumer);
        return topUps.length === tries && topUps.every(({ status }) => status === 'failed');
      });
    }
    const found = await findAutoTopUp(desk.database, consumer);
    assert.deepEqual([found?.status, found?.reason], ['off', 'card_declined']);
    const topUps = await desk.automaticTopUps(consumer);
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
    await desk.charge(consumer);
    await until(async () => (await desk.waitingNotices()) === 0);
    assert.equal((await desk.automaticTopUps(consumer)).length, 3);
  });

  /** With this card saved. */
  async function newConsumer(
    card: string,
    { threshold }: { threshold: number },
  ): Promise<Consumer> {
    const consumer = await desk.newConsumer();
    const failed = await desk.requestDirect(consumer, 1);
    assert.equal(failed.kind, 'failed');
    await desk.saveCard(consumer, card);
    await desk.topUpAutomatically(consumer, threshold);
    return consumer;
  }
});
