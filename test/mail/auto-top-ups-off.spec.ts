/**
 * The mail that automatic top-ups turned themselves off: one each time, even if a process or the mail server
 * is away.
 */
import assert from 'node:assert/strict';
import { asMicros } from '../../src/domain/money.ts';
import { autoTopUpMails } from '../../src/mail/auto-top-ups-off.ts';
import { findOwnerEmail } from '../../src/store/accounts/accounts.ts';
import { setAutoTopUp, takeUpAutoTopUp } from '../../src/store/top-ups/auto-top-ups.ts';
import { changeConsent } from '../../src/store/top-ups/monthly-ceiling.ts';
import { failTopUp } from '../../src/store/top-ups/end-unpaid-top-up.ts';
import { getTopUp, listTopUpsOf } from '../../src/store/top-ups/top-ups.ts';
import { recordUnpaid } from '../../src/store/top-ups/payment-evidence.ts';
import { sql } from '../../src/store/database.ts';
import { takeNotices } from '../../src/store/outbox.ts';
import { openOwedMailTest, type OwedMailTest } from '../support/owed-mails.ts';
import { dispute, newPayer, processorId, warning, type Payer } from '../support/payer.ts';

const FIVE = asMicros(5_000_000);
const HUNDRED = asMicros(100_000_000);
const SETTINGS = { thresholdMicros: FIVE, amountMicros: FIVE, ceilingMicros: HUNDRED };

describe('the mail that automatic top-ups turned themselves off', () => {
  let mails: OwedMailTest;

  before(async () => {
    mails = await openOwedMailTest(autoTopUpMails);
  });
  after(() => mails?.close());
  afterEach(() => mails.forget());

  it('says why and where to turn them on again, and is sent once by several workers', async () => {
    const payer = await newAutoPayer();
    const email = await findOwnerEmail(mails.database, payer.accountId);
    for (const count of [1, 2]) {
      await decline(payer);
      await mails.worker().sendOverdue();
      assert.deepEqual(mails.sent, [], `${count}`);
    }
    await decline(payer);
    await Promise.all([1, 2, 3].map(() => mails.worker().sendOverdue()));
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 1);
    const [{ recipients, raw }] = mails.sent as [(typeof mails.sent)[0]];
    assert.deepEqual(recipients, [email]);
    const text = raw.replaceAll('=\r\n', '');
    assert.match(text, /^Subject: Automatic top-ups were turned off for your Farebox account\r$/m);
    assert.match(text, /The last failure: The bank declined the saved card\./);
    assert.match(text, /https:\/\/console\.example\.com\/console\/balance/);
    await laterBy('1 hour');
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 1);
  });

  it('says that a payment was disputed, or reported as fraud', async () => {
    for (const [reported, why] of [
      [dispute(processorId('dp'), FIVE), /A payment to your Farebox account was disputed/],
      [warning(processorId('issfr'), FIVE), /A bank reported a payment .+ as possible fraud/],
    ] as const) {
      const payer = await newPayer(mails.database);
      const topUp = await payer.topUp(FIVE);
      await turnOn(payer);
      await payer.report(topUp, reported);
      await mails.worker().sendOverdue();
      const text = mails.sent.at(-1)?.raw.replaceAll('=\r\n', '') ?? '';
      assert.match(
        text,
        /^Subject: Automatic top-ups were turned off for your Farebox account\r$/m,
      );
      assert.match(text, why);
      assert.doesNotMatch(text, /failed|last failure/);
      assert.match(text, /https:\/\/console\.example\.com\/console\/balance/);
    }
    assert.equal(mails.sent.length, 2);
  });

  it('is sent once more when they were turned on and have turned themselves off again', async () => {
    const payer = await newAutoPayer();
    await decline(payer, true);
    await mails.worker().sendOverdue();
    await setAutoTopUp(mails.database, payer, SETTINGS);
    await decline(payer, true);
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 2);
  });

  it('waits for a mail server that is away, for up to three days', async () => {
    await decline(await newAutoPayer(), true);
    await mails.sendWhileDown();
    assert.equal(mails.errors.length, 1);
    await laterBy('4 minutes');
    await mails.worker().sendOverdue();
    assert.deepEqual(mails.sent, []);
    await laterBy('71 hours');
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 1);

    await decline(await newAutoPayer(), true);
    await mails.sendWhileDown();
    await laterBy('73 hours');
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 1);
    assert.match(mails.errors.at(-1) ?? '', /gave up on mails/);
  });

  it('is not sent when the owner turned them off, or turned them on again before it was sent', async () => {
    const [removed, again, inTime] = [
      await newAutoPayer(),
      await newAutoPayer(),
      await newAutoPayer(),
    ];
    await decline(removed, true);
    await setAutoTopUp(mails.database, removed, null);
    await decline(again, true);
    await setAutoTopUp(mails.database, again, SETTINGS);
    await setAutoTopUp(mails.database, inTime, null);
    await mails.worker().sendOverdue();
    assert.deepEqual(mails.sent, []);
  });

  async function newAutoPayer(): Promise<Payer> {
    const payer = await newPayer(mails.database);
    await payer.topUp(FIVE);
    await turnOn(payer);
    return payer;
  }

  async function turnOn(payer: Payer): Promise<void> {
    const { database } = mails;
    await changeConsent(database, payer.consumerId, {
      ceilingMicros: HUNDRED,
      givenBy: 'operator',
    });
    await setAutoTopUp(database, payer, SETTINGS);
  }

  /** A charge asks for a top-up, and the bank declines it. */
  async function decline(payer: Payer, isFinal = false): Promise<void> {
    const { database } = mails;
    await payer.charge(1);
    for (const notice of await takeNotices(database, 1_000, 0)) {
      if (notice.subjectId === payer.consumerId) await takeUpAutoTopUp(database, notice);
    }
    const [asked] = await listTopUpsOf(database, payer.consumerId, { limit: 1 });
    assert.ok(asked?.automatic && asked.status === 'pending');
    const code = 'card_declined';
    await recordUnpaid(database, await getTopUp(database, asked.id), { kind: 'failed', code });
    const failure = { code, message: 'no' };
    const state = await failTopUp(database, asked.id, { failure, retryMs: 0, isFinal });
    assert.equal(state?.reason, code);
  }

  const laterBy = (time: string) =>
    mails.database.query(sql.typeAlias('nothing')`
      update farebox.auto_top_ups set mail_owed_at = mail_owed_at - ${time}::interval,
        mail_tried_at = mail_tried_at - ${time}::interval
    `);
});
