/**
 * A consumer whose automatic top-ups are on, and the steps of a charge, a relay and time: for tests of the
 * store alone.
 */
import assert from 'node:assert/strict';
import { Type } from 'typebox';
import { asMicros } from '../../src/domain/money.ts';
import { examineLedger } from '../../src/store/doctor/ledger-checks.ts';
import { row, sql, type Database } from '../../src/store/database.ts';
import { hastenNotices, takeNotices, type Notice } from '../../src/store/outbox.ts';
import {
  findAutoTopUp,
  setAutoTopUp,
  takeUpAutoTopUp,
  type AutoTopUpSettings,
} from '../../src/store/top-ups/auto-top-ups.ts';
import { changeConsent } from '../../src/store/top-ups/monthly-ceiling.ts';
import { listTopUpsOf, type TopUp } from '../../src/store/top-ups/top-ups.ts';
import { endAll } from './end-all.ts';
import { openTestLedger } from './ledger.ts';
import { newPayer, type Payer } from './payer.ts';

export const DOLLAR = 1_000_000;
export const DECLINED = { code: 'card_declined', message: 'no' };
export const WITHDRAWN = { code: 'consent_required', message: 'no' };
export const SETTINGS: AutoTopUpSettings = {
  thresholdMicros: asMicros(10 * DOLLAR),
  amountMicros: asMicros(20 * DOLLAR),
  ceilingMicros: asMicros(100 * DOLLAR),
};

const noticeRow = row(Type.Object({ topic: Type.String(), waitMs: Type.Integer() }));

export type AutoTopUps = Awaited<ReturnType<typeof openAutoTopUps>>;

/** In a ledger of their own, whose books `end` proves before it drops it. */
export async function openAutoTopUps() {
  const ledger = await openTestLedger();
  const { database } = ledger;
  const end = () =>
    endAll(
      async () => assert.deepEqual(await examineLedger(database), []),
      () => ledger.drop(),
    );
  return { database, end, ...autoTopUpsIn(database) };
}

function autoTopUpsIn(database: Database) {
  return {
    newPayer: newAutoPayer,
    ask,
    take,
    takeUp,
    fire,
    notices,
    waitMs,
    waitIsOver,
    automatic,
    stateOf,
  };

  /** With $15.00, and consent to $1,000.00 a month. */
  async function newAutoPayer(settings = SETTINGS): Promise<Payer> {
    const payer = await newPayer(database);
    await payer.topUp(15 * DOLLAR);
    await changeConsent(database, payer.consumerId, {
      ceilingMicros: asMicros(1_000 * DOLLAR),
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
    await hastenNotices(database, 'auto_top_up', consumerId);
  }

  async function automatic({ consumerId }: Payer): Promise<readonly TopUp[]> {
    const topUps = await listTopUpsOf(database, consumerId, { limit: 100 });
    return topUps.filter((topUp) => topUp.automatic);
  }

  async function stateOf(payer: Payer) {
    const found = await findAutoTopUp(database, payer);
    return [found?.status, found?.reason];
  }
}
