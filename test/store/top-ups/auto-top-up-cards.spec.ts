/**
 * What automatic top-ups learn about the card that they charge: a dispute or fraud warning turns them off,
 * and another card ends the pause after a decline.
 */
import assert from 'node:assert/strict';
import { HOUR_MS } from '../../../src/domain/durations.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { recordAuthenticationAsked } from '../../../src/store/top-ups/authentication.ts';
import { recordProcessorCustomer } from '../../../src/store/top-ups/processor-customers.ts';
import { recordProcessorEvent } from '../../../src/store/top-ups/processor-events.ts';
import {
  chooseCard,
  findAutoTopUp,
  setAutoTopUp,
} from '../../../src/store/top-ups/auto-top-ups.ts';
import type { Database } from '../../../src/store/database.ts';
import {
  DECLINED,
  DOLLAR,
  openAutoTopUps,
  SETTINGS,
  WITHDRAWN,
  type AutoTopUps,
} from '../../support/auto-top-ups.ts';
import { dispute, processorId, refund, warning, type Payer } from '../../support/payer.ts';
import { credit, expire, fail } from '../../support/evidence.ts';

const customerOf = ({ consumerId }: Payer) => `cus_${consumerId}`;

describe('automatic top-ups', () => {
  let database: Database;
  let auto: AutoTopUps;

  before(async () => {
    auto = await openAutoTopUps();
    ({ database } = auto);
  });

  after(() => auto.end());

  describe('after a dispute or a fraud warning', () => {
    for (const [kind, reason, open] of [
      ['dispute', 'payment_disputed', dispute],
      ['warning', 'fraud_warning', warning],
    ] as const) {
      it(`turn themselves off, once for each ${kind}`, async () => {
        const payer = await auto.newPayer();
        const topUp = await payer.topUp(5 * DOLLAR);
        const [id, other] = [processorId('dp'), processorId('dp')];
        const first = open(id, 2 * DOLLAR);
        await payer.report(topUp, first);
        assert.deepEqual(await auto.stateOf(payer), ['off', reason]);
        assert.ok(await payer.charge(17 * DOLLAR));
        assert.equal(await payer.charge(17 * DOLLAR), false);
        assert.deepEqual(await auto.notices(payer), []);

        await setAutoTopUp(database, payer, SETTINGS);
        await payer.report(topUp, first);
        await payer.report(topUp, open(id, 2 * DOLLAR, 'won'));
        await payer.report(topUp, first);
        assert.deepEqual(await auto.stateOf(payer), ['on', null]);
        await payer.report(topUp, first, open(other, 2 * DOLLAR));
        assert.deepEqual(await auto.stateOf(payer), ['off', reason]);
      });
    }

    it('stay off when the dispute is won, and are turned off by one that is lost', async () => {
      const payer = await auto.newPayer();
      const topUp = await payer.topUp(5 * DOLLAR);
      const dp = processorId('dp');
      await payer.report(topUp, dispute(dp, DOLLAR, 'lost'));
      await payer.report(topUp, dispute(dp, DOLLAR, 'won'));
      assert.deepEqual(await auto.stateOf(payer), ['off', 'payment_disputed']);
    });

    it('stay on after a refund, and while a dispute is an inquiry', async () => {
      const payer = await auto.newPayer();
      const topUp = await payer.topUp(5 * DOLLAR);
      const [re, dp] = [processorId('re'), processorId('dp')];
      await payer.report(topUp, refund(re, DOLLAR), dispute(dp, DOLLAR, 'won'));
      assert.deepEqual(await auto.stateOf(payer), ['on', null]);
      await payer.report(topUp, refund(re, DOLLAR), dispute(dp, DOLLAR));
      assert.deepEqual(await auto.stateOf(payer), ['off', 'payment_disputed']);
    });

    it('stay as they were if the owner removed them or a failure turned them off', async () => {
      const [removed, failed] = [await auto.newPayer(), await auto.newPayer()];
      await setAutoTopUp(database, removed, null);
      for (const chargeMicros of [6 * DOLLAR, 1, 1]) {
        await fail(database, (await auto.fire(failed, chargeMicros)).id, DECLINED, HOUR_MS);
        await auto.waitIsOver(failed);
      }
      for (const payer of [removed, failed]) {
        await payer.report(await payer.topUp(5 * DOLLAR), dispute(processorId('dp'), DOLLAR));
      }
      assert.equal(await findAutoTopUp(database, removed), null);
      assert.deepEqual(await auto.stateOf(failed), ['off', 'card_declined']);
    });

    it('drop a notice that was written before', async () => {
      const payer = await auto.newPayer();
      const topUp = await payer.topUp(DOLLAR);
      const asked = await auto.ask(payer, 7 * DOLLAR);
      await payer.report(topUp, dispute(processorId('dp'), DOLLAR));
      await auto.takeUp(asked);
      assert.deepEqual(await auto.automatic(payer), []);
      assert.deepEqual(await auto.notices(payer), []);
    });

    it('stay off when the one in progress ends, in whichever way', async () => {
      for (const end of [
        (id: string) => credit(database, id),
        (id: string) => expire(database, id),
        (id: string) => fail(database, id, DECLINED, HOUR_MS),
        (id: string) => fail(database, id, WITHDRAWN, HOUR_MS),
      ]) {
        const payer = await auto.newPayer();
        const topUp = await payer.topUp(DOLLAR);
        const { id } = await auto.fire(payer, 7 * DOLLAR);
        await payer.report(topUp, dispute(processorId('dp'), DOLLAR));
        await end(id);
        assert.deepEqual(await auto.stateOf(payer), ['off', 'payment_disputed']);
        await payer.charge(DOLLAR);
        assert.deepEqual(await auto.notices(payer), []);
      }
    });
  });

  describe('after a decline, when the owner uses another card', () => {
    it('continue when it is saved, and once', async () => {
      const payer = await newPausedPayer();
      await savedCard(payer);
      await continues(payer);
      await auto.fire(payer, 1);
      await savedCard(payer);
      const [newest] = await auto.automatic(payer);
      const state = await fail(database, newest?.id ?? '', DECLINED, HOUR_MS);
      assert.deepEqual(state, { status: 'off', reason: 'card_declined' });
    });

    it('continue when it is chosen', async () => {
      const payer = await newPausedPayer();
      await chooseCard(database, payer, 'pm_1');
      await continues(payer);
    });

    it('wait when it is saved and another one stays chosen, or when the same one is chosen again', async () => {
      const payer = await auto.newPayer();
      await recordProcessorCustomer(database, payer.accountId, customerOf(payer));
      await chooseCard(database, payer, 'pm_1');
      await fail(database, (await auto.fire(payer)).id, DECLINED, HOUR_MS);
      await savedCard(payer);
      await chooseCard(database, payer, 'pm_1');
      await auto.takeUp(await auto.ask(payer, 1));
      await isPaused(payer);
    });

    it('stay off, and wait for the cardholder or a ceiling as before', async () => {
      const payer = await auto.newPayer({ ...SETTINGS, ceilingMicros: asMicros(20 * DOLLAR) });
      await recordProcessorCustomer(database, payer.accountId, customerOf(payer));
      await credit(database, (await auto.fire(payer)).id);
      await auto.takeUp(await auto.ask(payer, 20 * DOLLAR));
      await savedCard(payer);
      assert.deepEqual(await auto.stateOf(payer), ['waiting', 'ceiling_reached']);

      const asked = await newPausedPayer();
      await auto.waitIsOver(asked);
      await auto.takeUp(await auto.take(asked));
      await recordAuthenticationAsked(database, (await auto.automatic(asked))[0]?.id ?? '');
      await savedCard(asked);
      assert.deepEqual(await auto.stateOf(asked), ['waiting', 'authentication_required']);

      const off = await newPausedPayer();
      await off.report(await off.topUp(DOLLAR), dispute(processorId('dp'), DOLLAR));
      await savedCard(off);
      assert.deepEqual(await auto.stateOf(off), ['off', 'payment_disputed']);
    });
  });

  /** A charge has asked since the decline, and its notice waits. */
  async function newPausedPayer(): Promise<Payer> {
    const payer = await auto.newPayer();
    await recordProcessorCustomer(database, payer.accountId, customerOf(payer));
    await fail(database, (await auto.fire(payer)).id, DECLINED, HOUR_MS);
    await auto.takeUp(await auto.ask(payer, 1));
    await isPaused(payer);
    return payer;
  }

  async function isPaused(payer: Payer): Promise<void> {
    assert.deepEqual(await auto.stateOf(payer), ['waiting', 'card_declined']);
    assert.ok((await auto.waitMs(payer)) > HOUR_MS / 2);
  }

  /** The top-up that was due starts now. Two failures of it and the next one are not three. */
  async function continues(payer: Payer): Promise<void> {
    assert.deepEqual(await auto.stateOf(payer), ['on', null]);
    await auto.takeUp(await auto.take(payer));
    for (const due of [0, 1]) {
      if (due > 0) await auto.fire(payer, 1);
      const [newest] = await auto.automatic(payer);
      assert.equal(newest?.status, 'pending');
      const { status } = (await fail(database, newest.id, DECLINED, HOUR_MS)) ?? {};
      assert.equal(status, 'waiting');
      await auto.waitIsOver(payer);
    }
  }

  const savedCard = (payer: Payer) =>
    recordProcessorEvent(database, {
      id: `evt_${payer.consumerId}`,
      type: 'payment_method.attached',
      objectId: 'pm_1',
      topUpId: undefined,
      paymentIntentId: undefined,
      topic: undefined,
      isFailedAttempt: false,
      cardSavedBy: customerOf(payer),
    });
});
