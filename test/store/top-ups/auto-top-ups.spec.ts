/** Automatic top-ups in the database: requested once, taken up once, within both ceilings, and finally off. */
import assert from 'node:assert/strict';
import { Type } from 'typebox';
import { HOUR_MS } from '../../../src/domain/durations.ts';
import { asMicros } from '../../../src/domain/money.ts';
import type { TopUpFailure } from '../../../src/domain/top-up.ts';
import { adjustBalance } from '../../../src/store/balance/adjustments.ts';
import { auditLedger } from '../../../src/store/audit/ledger-checks.ts';
import {
  findAutoTopUp,
  setAutoTopUp,
  takeUpAutoTopUp,
  type AutoTopUpSettings,
} from '../../../src/store/top-ups/auto-top-ups.ts';
import { changeConsent } from '../../../src/store/top-ups/monthly-ceiling.ts';
import { row, sql, type Database } from '../../../src/store/database.ts';
import { takeNotices, type Notice } from '../../../src/store/outbox.ts';
import { admitTopUp, listTopUpsOf, type TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { endAll } from '../../support/end-all.ts';
import { placeAll, placing, postEntries, releasing } from '../../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer, type Payer } from '../../support/payer.ts';
import { credit, expire, fail } from '../../support/evidence.ts';

const DOLLAR = 1_000_000;
const DECLINED: TopUpFailure = { code: 'card_declined', message: 'no' };
const WITHDRAWN: TopUpFailure = { code: 'consent_required', message: 'no' };
const SETTINGS: AutoTopUpSettings = {
  thresholdMicros: asMicros(10 * DOLLAR),
  amountMicros: asMicros(20 * DOLLAR),
  ceilingMicros: asMicros(100 * DOLLAR),
};

const noticeRow = row(Type.Object({ topic: Type.String(), waitMs: Type.Integer() }));

describe('automatic top-ups in the database', () => {
  let ledger: TestLedger;
  let database: Database;

  before(async () => {
    ledger = await openTestLedger();
    ({ database } = ledger);
  });

  after(() =>
    endAll(
      async () => assert.deepEqual(await auditLedger(database), []),
      () => ledger.drop(),
    ),
  );

  it('are requested once, by the charge that leaves less than the threshold', async () => {
    const payer = await newAutoPayer();
    assert.ok(await payer.charge(5 * DOLLAR));
    assert.deepEqual(await notices(payer), []);
    assert.ok(await payer.charge(1));
    assert.ok(await payer.charge(1));
    assert.equal((await notices(payer)).length, 1);
  });

  it('are requested once when a charge is refused', async () => {
    const payer = await newAutoPayer();
    assert.equal(await payer.charge(16 * DOLLAR), false);
    assert.equal(await payer.charge(16 * DOLLAR), false);
    assert.equal((await notices(payer)).length, 1);
  });

  it('are not requested before the owner switches them on, nor after switching them off', async () => {
    const payer = await newAutoPayer();
    await setAutoTopUp(database, payer, null);
    await payer.charge(15 * DOLLAR);
    assert.deepEqual(await notices(payer), []);
    assert.equal(await findAutoTopUp(database, payer), null);
  });

  it('are not switched on without the consent of the owner, nor changed', async () => {
    const payer = await newAutoPayer();
    await payer.charge(6 * DOLLAR);
    await changeConsent(database, payer.consumerId, { ceiling: null, givenBy: 'owner' });
    const settings = { ...SETTINGS, amountMicros: asMicros(30 * DOLLAR) };
    assert.equal(await setAutoTopUp(database, payer, settings), 'consent_required');
    assert.equal((await findAutoTopUp(database, payer))?.amountMicros, SETTINGS.amountMicros);
    assert.equal((await notices(payer)).length, 1);
    assert.equal(await setAutoTopUp(database, payer, null), 'set');
  });

  it('turn a notice into one top-up, under concurrent attempts', async () => {
    const payer = await newAutoPayer();
    const [notice] = await ask(payer);
    await Promise.all(Array.from({ length: 8 }, () => takeUpAutoTopUp(database, notice!)));
    const topUps = await automatic(payer);
    assert.deepEqual(
      topUps.map(({ status, method, amountMicros }) => [status, method, amountMicros]),
      [['pending', 'direct', 20 * DOLLAR]],
    );
    assert.deepEqual(await notices(payer), []);
    const [left] = await notices({ consumerId: topUps[0]!.id });
    assert.equal(left?.topic, 'top_up');
  });

  it('are dropped when the balance was restored before the first delivery, and asked for again', async () => {
    for (const chargeMicros of [6 * DOLLAR, 16 * DOLLAR]) {
      const payer = await newAutoPayer();
      const asked = await ask(payer, chargeMicros);
      await adjustBalance(database, payer, {
        amountMicros: asMicros(500 * DOLLAR),
        reason: 'while no worker ran',
      });
      await takeUp(asked);
      assert.deepEqual(await automatic(payer), []);
      assert.deepEqual(await notices(payer), []);
      await fire(payer, 506 * DOLLAR);
    }
  });

  it('follow a refused charge at any balance', async () => {
    await fire(await newAutoPayer(), 16 * DOLLAR);
  });

  it('follow a refused charge although the relay that took its notice first was killed', async () => {
    const payer = await newAutoPayer();
    await ask(payer, 16 * DOLLAR);
    await takeUp(await take(payer));
    assert.equal((await automatic(payer)).length, 1);
  });

  it('are not made for a hold that was released before the first delivery', async () => {
    const payer = await newAutoPayer();
    const [holdId = ''] = await placeAll(database, [placing(payer, 6 * DOLLAR)]);
    const asked = await take(payer);
    assert.equal(asked.length, 1);
    await postEntries(database, [releasing(holdId)]);
    await takeUp(asked);
    assert.deepEqual(await automatic(payer), []);
    assert.deepEqual(await notices(payer), []);
    await fire(payer);
  });

  it('run one at a time, and are requested again after the end', async () => {
    const payer = await newAutoPayer();
    const first = await fire(payer);
    await setAutoTopUp(database, payer, SETTINGS);
    await takeUp(await ask(payer, 1));
    assert.equal((await automatic(payer)).length, 1);
    await credit(database, first.id);
    await fire(payer, 20 * DOLLAR);
    assert.equal((await automatic(payer)).length, 2);
  });

  it('are requested again by the next charge when the credit was too small', async () => {
    const payer = await newAutoPayer({ ...SETTINGS, thresholdMicros: asMicros(50 * DOLLAR) });
    const first = await fire(payer, 1);
    await credit(database, first.id);
    await fire(payer, 1);
    assert.equal((await automatic(payer)).length, 2);
  });

  it('are requested again after an operator canceled one', async () => {
    const payer = await newAutoPayer();
    const first = await fire(payer);
    await expire(database, first.id);
    assert.equal((await findAutoTopUp(database, payer))?.status, 'on');
    await fire(payer, 1);
  });

  describe('at their ceiling', () => {
    it("wait for the owner's consent, and start when it is given", async () => {
      const payer = await newAutoPayer();
      await changeConsent(database, payer.consumerId, { ceiling: null, givenBy: 'operator' });
      await takeUp(await ask(payer));
      assert.deepEqual(await stateOf(payer), ['waiting', 'consent_required']);
      assert.ok((await waitMs(payer)) > HOUR_MS / 2);

      await changeConsent(database, payer.consumerId, {
        ceiling: asMicros(20 * DOLLAR),
        givenBy: 'operator',
      });
      await takeUp(await take(payer));
      assert.equal((await automatic(payer)).length, 1);
      assert.deepEqual(await stateOf(payer), ['on', null]);
    });

    it('wait when the month would take more than the owner’s limit', async () => {
      const payer = await newAutoPayer({ ...SETTINGS, ceilingMicros: asMicros(30 * DOLLAR) });
      await credit(database, (await fire(payer)).id);
      await takeUp(await ask(payer, 20 * DOLLAR));
      assert.deepEqual(await stateOf(payer), ['waiting', 'ceiling_reached']);
      assert.equal((await automatic(payer)).length, 1);

      await database.query(sql.typeAlias('nothing')`
        update farebox.top_ups set created_at = created_at - interval '32 days'
        where consumer_id = ${payer.consumerId}
      `);
      await waitIsOver(payer);
      await takeUp(await take(payer));
      assert.equal((await automatic(payer)).length, 2);
    });

    it('and direct ones together take no more than the owner consented to, twenty at once and again', async () => {
      const payer = await newAutoPayer({ ...SETTINGS, ceilingMicros: asMicros(1_000 * DOLLAR) });
      await changeConsent(database, payer.consumerId, {
        ceiling: asMicros(110 * DOLLAR),
        givenBy: 'operator',
      });
      const direct = { ...payer, method: 'direct', amountMicros: asMicros(20 * DOLLAR) } as const;
      const asked = await ask(payer);
      const [results] = await Promise.all([
        Promise.all(Array.from({ length: 20 }, () => admitTopUp(database, direct))),
        takeUp(asked),
      ]);
      const admitted = results.filter(({ kind }) => kind === 'admitted').length;
      assert.equal(admitted + (await automatic(payer)).length, 5);
    });
  });

  describe('after a decline', () => {
    it('pause, then pause twice as long, then turn themselves off', async () => {
      const payer = await newAutoPayer();
      await fire(payer);
      for (const wait of [HOUR_MS, 2 * HOUR_MS]) {
        const [topUp] = await automatic(payer);
        const state = await fail(database, topUp!.id, DECLINED, HOUR_MS);
        assert.deepEqual(state, { status: 'waiting', reason: 'card_declined' });
        await takeUp(await ask(payer, 1));
        const waits = await waitMs(payer);
        assert.ok(waits > 0.9 * wait && waits <= wait, `${waits}`);
        await waitIsOver(payer);
        await takeUp(await take(payer));
      }
      const [third] = await automatic(payer);
      assert.equal(third?.status, 'pending');
      const state = await fail(database, third.id, DECLINED, HOUR_MS);
      assert.deepEqual(state, { status: 'off', reason: 'card_declined' });
      assert.ok(await payer.charge(1));
      assert.deepEqual(await notices(payer), []);
      assert.deepEqual(await stateOf(payer), ['off', 'card_declined']);

      await setAutoTopUp(database, payer, SETTINGS);
      assert.deepEqual(await stateOf(payer), ['on', null]);
      await fire(payer, 1);
    });

    it('count only consecutive declines, and each once', async () => {
      const payer = await newAutoPayer();
      for (const first of [6 * DOLLAR, 20 * DOLLAR]) {
        for (const chargeMicros of [first, 1]) {
          const { id } = await fire(payer, chargeMicros);
          const state = await fail(database, id, DECLINED, HOUR_MS);
          assert.deepEqual(await fail(database, id, DECLINED, HOUR_MS), state);
          await waitIsOver(payer);
        }
        await credit(database, (await fire(payer, 1)).id);
        assert.deepEqual(await stateOf(payer), ['on', null]);
      }
    });

    it('count no top-up whose card was not charged because the owner withdrew the consent', async () => {
      const payer = await newAutoPayer();
      for (const chargeMicros of [6 * DOLLAR, 1]) {
        await fail(database, (await fire(payer, chargeMicros)).id, DECLINED, HOUR_MS);
        await waitIsOver(payer);
      }
      const { id } = await fire(payer, 1);
      await changeConsent(database, payer.consumerId, { ceiling: null, givenBy: 'owner' });
      const state = { status: 'waiting', reason: 'consent_required' };
      assert.deepEqual(await fail(database, id, WITHDRAWN, HOUR_MS), state);
      await takeUp(await ask(payer, 1));
      assert.equal((await automatic(payer)).length, 3);

      await changeConsent(database, payer.consumerId, {
        ceiling: asMicros(1_000 * DOLLAR),
        givenBy: 'operator',
      });
      await takeUp(await take(payer));
      assert.equal((await automatic(payer)).length, 4);
      assert.deepEqual(await stateOf(payer), ['on', null]);
    });

    it('are dropped when somebody has topped up by hand meanwhile', async () => {
      const payer = await newAutoPayer();
      await fail(database, (await fire(payer)).id, DECLINED, HOUR_MS);
      await takeUp(await ask(payer, 1));
      await payer.topUp(50 * DOLLAR);
      await waitIsOver(payer);
      await takeUp(await take(payer));
      assert.deepEqual(await notices(payer), []);
      assert.equal((await automatic(payer)).length, 1);
      assert.deepEqual(await stateOf(payer), ['on', null]);
      await fire(payer, 50 * DOLLAR);
    });
  });

  /** With $15.00, and consent to $1,000.00 a month. */
  async function newAutoPayer(settings = SETTINGS): Promise<Payer> {
    const payer = await newPayer(database);
    await payer.topUp(15 * DOLLAR);
    await changeConsent(database, payer.consumerId, {
      ceiling: asMicros(1_000 * DOLLAR),
      givenBy: 'operator',
    });
    await setAutoTopUp(database, payer, settings);
    return payer;
  }

  /** The notice of a charge, taken like a relay takes it. */
  async function ask(payer: Payer, chargeMicros = 6 * DOLLAR): Promise<readonly Notice[]> {
    await payer.charge(chargeMicros);
    const asked = await take(payer);
    assert.equal(asked.length, 1);
    return asked;
  }

  async function take({ consumerId }: Payer): Promise<readonly Notice[]> {
    const taken = await takeNotices(database, 1_000, 0);
    return taken.filter(({ subjectId }) => subjectId === consumerId);
  }

  async function takeUp(taken: readonly Notice[]): Promise<void> {
    for (const notice of taken) await takeUpAutoTopUp(database, notice);
  }

  /** The pending top-up that a charge has led to. */
  async function fire(payer: Payer, chargeMicros = 6 * DOLLAR): Promise<TopUp> {
    await takeUp(await ask(payer, chargeMicros));
    const [newest] = await automatic(payer);
    assert.equal(newest?.status, 'pending');
    return newest;
  }

  function notices({ consumerId }: Pick<Payer, 'consumerId'>) {
    return database.any(sql.type(noticeRow)`
      select topic, ceil(extract(epoch from next_attempt_at - now()) * 1000)::int8 as "waitMs"
      from farebox.outbox where subject_id = ${consumerId}
    `);
  }

  async function waitMs(payer: Payer): Promise<number> {
    const [notice] = await notices(payer);
    return notice?.waitMs ?? 0;
  }

  /** As if its delay had passed. */
  async function waitIsOver({ consumerId }: Payer): Promise<void> {
    await database.query(sql.typeAlias('nothing')`
      update farebox.auto_top_ups set not_before = now() where consumer_id = ${consumerId}
    `);
    await database.query(sql.typeAlias('nothing')`
      update farebox.outbox set next_attempt_at = now() where subject_id = ${consumerId}
    `);
  }

  async function automatic({ consumerId }: Payer): Promise<readonly TopUp[]> {
    const topUps = await listTopUpsOf(database, consumerId, { limit: 100 });
    return topUps.filter((topUp) => topUp.automatic);
  }

  async function stateOf(payer: Payer) {
    const found = await findAutoTopUp(database, payer);
    return [found?.status, found?.reason];
  }
});
