/** Automatic top-ups in the database: requested once, taken up once, within both ceilings, and finally off. */
import assert from 'node:assert/strict';
import { HOUR_MS } from '../../../src/domain/durations.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { adjustBalance } from '../../../src/store/balance/adjustments.ts';
import {
  findAutoTopUp,
  findAutoTopUpFor,
  setAutoTopUp,
  takeUpAutoTopUp,
} from '../../../src/store/top-ups/auto-top-ups.ts';
import { changeConsent } from '../../../src/store/top-ups/monthly-ceiling.ts';
import { sql, type Database } from '../../../src/store/database.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { admitTopUp } from '../../../src/store/top-ups/admit-top-up.ts';
import {
  DECLINED,
  DOLLAR,
  openAutoTopUps,
  SETTINGS,
  WITHDRAWN,
  type AutoTopUps,
} from '../../support/auto-top-ups.ts';
import { newDraft, post } from '../../support/charge-drafts.ts';
import { placeAll, placing, postEntries, releasing } from '../../support/hold-drafts.ts';
import { credit, expire, fail } from '../../support/evidence.ts';
import type { Payer } from '../../support/payer.ts';

describe('automatic top-ups in the database', () => {
  let database: Database;
  let auto: AutoTopUps;

  before(async () => {
    auto = await openAutoTopUps();
    ({ database } = auto);
  });

  after(() => auto.end());

  it('are requested once, by the charge that leaves less than the threshold', async () => {
    const payer = await auto.newPayer();
    assert.ok(await payer.charge(5 * DOLLAR));
    assert.deepEqual(await auto.notices(payer), []);
    assert.ok(await payer.charge(1));
    assert.ok(await payer.charge(1));
    assert.equal((await auto.notices(payer)).length, 1);
  });

  it('are requested once when a charge is refused', async () => {
    const payer = await auto.newPayer();
    assert.equal(await payer.charge(16 * DOLLAR), false);
    assert.equal(await payer.charge(16 * DOLLAR), false);
    assert.equal((await auto.notices(payer)).length, 1);
  });

  it('are not requested before the owner switches them on, nor after switching them off', async () => {
    const payer = await auto.newPayer();
    await setAutoTopUp(database, payer, null);
    await payer.charge(15 * DOLLAR);
    assert.deepEqual(await auto.notices(payer), []);
    assert.equal(await findAutoTopUp(database, payer), null);
  });

  it('are not switched on without the consent of the owner, nor changed', async () => {
    const payer = await auto.newPayer();
    await payer.charge(6 * DOLLAR);
    await changeConsent(database, payer.consumerId, { ceilingMicros: null, givenBy: 'owner' });
    const settings = { ...SETTINGS, amountMicros: asMicros(30 * DOLLAR) };
    assert.equal(await setAutoTopUp(database, payer, settings), 'consent_required');
    assert.equal((await findAutoTopUp(database, payer))?.amountMicros, SETTINGS.amountMicros);
    assert.equal((await auto.notices(payer)).length, 1);
    assert.equal(await setAutoTopUp(database, payer, null), 'set');
  });

  it('turn a notice into one top-up, under concurrent attempts', async () => {
    const payer = await auto.newPayer();
    const [notice] = await auto.ask(payer);
    await Promise.all(Array.from({ length: 8 }, () => takeUpAutoTopUp(database, notice!)));
    const topUps = await auto.automatic(payer);
    assert.deepEqual(
      topUps.map(({ status, method, amountMicros }) => [status, method, amountMicros]),
      [['pending', 'direct', 20 * DOLLAR]],
    );
    assert.deepEqual(await auto.notices(payer), []);
    const [left] = await auto.notices({ consumerId: topUps[0]!.id });
    assert.equal(left?.topic, 'top_up');
  });

  it('are dropped when the balance was restored before the first delivery, and asked for again', async () => {
    for (const chargeMicros of [6 * DOLLAR, 16 * DOLLAR]) {
      const payer = await auto.newPayer();
      const asked = await auto.ask(payer, chargeMicros);
      await adjustBalance(database, payer, {
        amountMicros: asMicros(500 * DOLLAR),
        reason: 'while no worker ran',
      });
      await auto.takeUp(asked);
      assert.deepEqual(await auto.automatic(payer), []);
      assert.deepEqual(await auto.notices(payer), []);
      await auto.fire(payer, 506 * DOLLAR);
    }
  });

  it('follow a refused charge or hold at a balance above the threshold if their amount would cover it', async () => {
    const most = 35 * DOLLAR;
    await auto.fire(await auto.newPayer(), 16 * DOLLAR);
    await auto.fire(await auto.newPayer(), most);
    const payer = await auto.newPayer();
    await refuseHold(payer, most);
    await auto.takeUp(await auto.take(payer));
    assert.equal((await auto.automatic(payer)).length, 1);
    const other = await auto.newPayer();
    await post(
      database,
      [2_000 * DOLLAR, most].map((micros) => newDraft(other, micros)),
    );
    await auto.takeUp(await auto.take(other));
    assert.equal((await auto.automatic(other)).length, 1);
  });

  it('do not follow refused charges and holds that their amount would not cover', async () => {
    const payer = await auto.newPayer();
    for (const micros of [2_000 * DOLLAR, 35 * DOLLAR + 1, 2_000 * DOLLAR]) {
      assert.equal(await payer.charge(micros), false);
      await refuseHold(payer, micros);
      assert.deepEqual(await auto.notices(payer), []);
    }
    await auto.fire(payer, 35 * DOLLAR);
  });

  it('follow any refused charge at a balance below the threshold, until it is no longer below', async () => {
    const payer = await auto.newPayer({ ...SETTINGS, thresholdMicros: asMicros(50 * DOLLAR) });
    await credit(database, (await auto.fire(payer, 2_000 * DOLLAR)).id);
    await credit(database, (await auto.fire(payer, 2_000 * DOLLAR)).id);
    assert.equal(await payer.charge(2_000 * DOLLAR), false);
    assert.deepEqual(await auto.notices(payer), []);
    assert.equal((await auto.automatic(payer)).length, 2);
  });

  it('follow a refused charge although the relay that took its notice first was killed', async () => {
    const payer = await auto.newPayer();
    await auto.ask(payer, 16 * DOLLAR);
    await auto.takeUp(await auto.take(payer));
    assert.equal((await auto.automatic(payer)).length, 1);
  });

  it('are not made for a hold that was released before the first delivery', async () => {
    const payer = await auto.newPayer();
    const [holdId = ''] = await placeAll(database, [placing(payer, 6 * DOLLAR)]);
    const asked = await auto.take(payer);
    assert.equal(asked.length, 1);
    await postEntries(database, [releasing(holdId)]);
    await auto.takeUp(asked);
    assert.deepEqual(await auto.automatic(payer), []);
    assert.deepEqual(await auto.notices(payer), []);
    await auto.fire(payer);
  });

  it('are needed until something is credited and the balance is at the threshold again', async () => {
    const payer = await auto.newPayer();
    const [holdId = ''] = await placeAll(database, [placing(payer, 6 * DOLLAR)]);
    await auto.takeUp(await auto.take(payer));
    const [topUp] = await auto.automatic(payer);
    const isNeeded = async () => (await findAutoTopUpFor(database, topUp!))?.isNeeded;
    await payer.topUp(DOLLAR / 2);
    assert.equal(await isNeeded(), true);
    await postEntries(database, [releasing(holdId)]);
    assert.equal(await isNeeded(), false);
    await setAutoTopUp(database, payer, { ...SETTINGS, thresholdMicros: asMicros(16 * DOLLAR) });
    assert.equal(await isNeeded(), true);
  });

  it('are needed at any balance until something is credited, after a refused charge or a released hold', async () => {
    const payer = await auto.newPayer();
    const refused = await auto.fire(payer, 35 * DOLLAR);
    const holder = await auto.newPayer();
    const [holdId = ''] = await placeAll(database, [placing(holder, 6 * DOLLAR)]);
    await auto.takeUp(await auto.take(holder));
    const [held] = await auto.automatic(holder);
    await postEntries(database, [releasing(holdId)]);
    for (const [owner, topUp] of [
      [payer, refused],
      [holder, held!],
    ] as const) {
      assert.equal((await findAutoTopUpFor(database, topUp))?.isNeeded, true);
      await owner.topUp(DOLLAR);
      assert.equal((await findAutoTopUpFor(database, topUp))?.isNeeded, false);
    }
  });

  it('run one at a time, and are requested again after the end', async () => {
    const payer = await auto.newPayer();
    const first = await auto.fire(payer);
    await setAutoTopUp(database, payer, SETTINGS);
    await auto.takeUp(await auto.ask(payer, 1));
    assert.equal((await auto.automatic(payer)).length, 1);
    await credit(database, first.id);
    await auto.fire(payer, 20 * DOLLAR);
    assert.equal((await auto.automatic(payer)).length, 2);
  });

  it('are requested again by the next charge when the credit was too small', async () => {
    const payer = await auto.newPayer({ ...SETTINGS, thresholdMicros: asMicros(50 * DOLLAR) });
    const first = await auto.fire(payer, 1);
    await credit(database, first.id);
    await auto.fire(payer, 1);
    assert.equal((await auto.automatic(payer)).length, 2);
  });

  it('are requested again after an operator canceled one', async () => {
    const payer = await auto.newPayer();
    const first = await auto.fire(payer);
    await expire(database, first.id);
    assert.equal((await findAutoTopUp(database, payer))?.status, 'on');
    await auto.fire(payer, 1);
  });

  describe('at their ceiling', () => {
    it("wait for the owner's consent, and start when it is given", async () => {
      const payer = await auto.newPayer();
      await changeConsent(database, payer.consumerId, { ceilingMicros: null, givenBy: 'operator' });
      await auto.takeUp(await auto.ask(payer));
      assert.deepEqual(await auto.stateOf(payer), ['waiting', 'consent_required']);
      assert.ok((await auto.waitMs(payer)) > HOUR_MS / 2);

      await changeConsent(database, payer.consumerId, {
        ceilingMicros: asMicros(20 * DOLLAR),
        givenBy: 'operator',
      });
      await auto.takeUp(await auto.take(payer));
      assert.equal((await auto.automatic(payer)).length, 1);
      assert.deepEqual(await auto.stateOf(payer), ['on', null]);
    });

    it('wait when the month would take more than the owner’s limit', async () => {
      const payer = await auto.newPayer({ ...SETTINGS, ceilingMicros: asMicros(30 * DOLLAR) });
      await credit(database, (await auto.fire(payer)).id);
      await auto.takeUp(await auto.ask(payer, 20 * DOLLAR));
      assert.deepEqual(await auto.stateOf(payer), ['waiting', 'ceiling_reached']);
      assert.equal((await auto.automatic(payer)).length, 1);

      await database.query(sql.typeAlias('nothing')`
        update farebox.top_ups set created_at = created_at - interval '32 days',
          completed_at = completed_at - interval '32 days'
        where consumer_id = ${payer.consumerId}
      `);
      await auto.waitIsOver(payer);
      await auto.takeUp(await auto.take(payer));
      assert.equal((await auto.automatic(payer)).length, 2);
    });

    it('and direct ones together take no more than the owner consented to, twenty at once and again', async () => {
      const payer = await auto.newPayer({ ...SETTINGS, ceilingMicros: asMicros(1_000 * DOLLAR) });
      await changeConsent(database, payer.consumerId, {
        ceilingMicros: asMicros(110 * DOLLAR),
        givenBy: 'operator',
      });
      const direct = { ...payer, method: 'direct', amountMicros: asMicros(20 * DOLLAR) } as const;
      const asked = await auto.ask(payer);
      const [results] = await Promise.all([
        Promise.all(Array.from({ length: 20 }, () => admitTopUp(database, direct))),
        auto.takeUp(asked),
      ]);
      const admitted = results.filter(({ kind }) => kind === 'admitted').length;
      assert.equal(admitted + (await auto.automatic(payer)).length, 5);
    });

    it('take no more, and leave the books right, when one is paid after its failure was recorded', async () => {
      const payer = await auto.newPayer({ ...SETTINGS, ceilingMicros: asMicros(20 * DOLLAR) });
      const failed = await auto.fire(payer);
      await fail(database, failed.id, DECLINED, HOUR_MS);
      await auto.waitIsOver(payer);
      await credit(database, (await auto.fire(payer, 1)).id);
      assert.equal(await credit(database, failed.id), 'credited');
      await auto.takeUp(await auto.ask(payer, 40 * DOLLAR));
      assert.deepEqual(await auto.stateOf(payer), ['waiting', 'ceiling_reached']);
      assert.deepEqual(await examineLedger(database, { parts: ['top-ups'] }), []);
    });
  });

  describe('after a decline', () => {
    it('pause, then pause twice as long, then turn themselves off', async () => {
      const payer = await auto.newPayer();
      await auto.fire(payer);
      for (const wait of [HOUR_MS, 2 * HOUR_MS]) {
        const [topUp] = await auto.automatic(payer);
        const state = await fail(database, topUp!.id, DECLINED, HOUR_MS);
        assert.deepEqual(state, { status: 'waiting', reason: 'card_declined' });
        await auto.takeUp(await auto.ask(payer, 1));
        const waits = await auto.waitMs(payer);
        assert.ok(waits > 0.9 * wait && waits <= wait, `${waits}`);
        await auto.waitIsOver(payer);
        await auto.takeUp(await auto.take(payer));
      }
      const [third] = await auto.automatic(payer);
      assert.equal(third?.status, 'pending');
      const state = await fail(database, third.id, DECLINED, HOUR_MS);
      assert.deepEqual(state, { status: 'off', reason: 'card_declined' });
      assert.ok(await payer.charge(1));
      assert.deepEqual(await auto.notices(payer), []);
      assert.deepEqual(await auto.stateOf(payer), ['off', 'card_declined']);

      await setAutoTopUp(database, payer, SETTINGS);
      assert.deepEqual(await auto.stateOf(payer), ['on', null]);
      await auto.fire(payer, 1);
    });

    it('count only consecutive declines, and each once', async () => {
      const payer = await auto.newPayer();
      for (const first of [6 * DOLLAR, 20 * DOLLAR]) {
        for (const chargeMicros of [first, 1]) {
          const { id } = await auto.fire(payer, chargeMicros);
          const state = await fail(database, id, DECLINED, HOUR_MS);
          assert.deepEqual(await fail(database, id, DECLINED, HOUR_MS), state);
          await auto.waitIsOver(payer);
        }
        await credit(database, (await auto.fire(payer, 1)).id);
        assert.deepEqual(await auto.stateOf(payer), ['on', null]);
      }
    });

    it('count no top-up whose card was not charged because the owner withdrew the consent', async () => {
      const payer = await auto.newPayer();
      for (const chargeMicros of [6 * DOLLAR, 1]) {
        await fail(database, (await auto.fire(payer, chargeMicros)).id, DECLINED, HOUR_MS);
        await auto.waitIsOver(payer);
      }
      const { id } = await auto.fire(payer, 1);
      await changeConsent(database, payer.consumerId, { ceilingMicros: null, givenBy: 'owner' });
      const state = { status: 'waiting', reason: 'consent_required' };
      assert.deepEqual(await fail(database, id, WITHDRAWN, HOUR_MS), state);
      await auto.takeUp(await auto.ask(payer, 1));
      assert.equal((await auto.automatic(payer)).length, 3);

      await changeConsent(database, payer.consumerId, {
        ceilingMicros: asMicros(1_000 * DOLLAR),
        givenBy: 'operator',
      });
      await auto.takeUp(await auto.take(payer));
      assert.equal((await auto.automatic(payer)).length, 4);
      assert.deepEqual(await auto.stateOf(payer), ['on', null]);
    });

    it('are dropped when somebody has topped up by hand meanwhile', async () => {
      const payer = await auto.newPayer();
      await fail(database, (await auto.fire(payer)).id, DECLINED, HOUR_MS);
      await auto.takeUp(await auto.ask(payer, 1));
      await payer.topUp(50 * DOLLAR);
      await auto.waitIsOver(payer);
      await auto.takeUp(await auto.take(payer));
      assert.deepEqual(await auto.notices(payer), []);
      assert.equal((await auto.automatic(payer)).length, 1);
      assert.deepEqual(await auto.stateOf(payer), ['on', null]);
      await auto.fire(payer, 50 * DOLLAR);
    });
  });

  async function refuseHold(payer: Payer, micros: number): Promise<void> {
    const [outcome] = await postEntries(database, [placing(payer, micros)]);
    assert.equal(outcome?.kind, 'insufficient');
  }
});
