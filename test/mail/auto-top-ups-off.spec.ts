/** The mail that automatic top-ups turned themselves off: one each time, even if a process or the mail server is away. */
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { asMicros } from '../../src/domain/money.ts';
import { autoTopUpMails } from '../../src/mail/auto-top-ups-off.ts';
import { findOwnerEmail } from '../../src/store/accounts/accounts.ts';
import { setAutoTopUp, takeUpAutoTopUp } from '../../src/store/top-ups/auto-top-ups.ts';
import { changeConsent } from '../../src/store/top-ups/monthly-ceiling.ts';
import { failTopUp, getTopUp, listTopUpsOf } from '../../src/store/top-ups/top-ups.ts';
import { recordUnpaid } from '../../src/store/top-ups/payment-evidence.ts';
import { sql } from '../../src/store/database.ts';
import { takeNotices } from '../../src/store/outbox.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { startMailServer } from '../support/mail-server.ts';
import { newPayer, type Payer } from '../support/payer.ts';
import { choosePort } from '../support/ports.ts';

const FIVE = asMicros(5_000_000);
const HUNDRED = asMicros(100_000_000);
const SETTINGS = { thresholdMicros: FIVE, amountMicros: FIVE, ceilingMicros: HUNDRED };

describe('the mail that automatic top-ups turned themselves off', () => {
  let ledger: TestLedger;
  let server: Awaited<ReturnType<typeof startMailServer>>;
  const errors: string[] = [];

  before(async () => {
    [ledger, server] = await Promise.all([openTestLedger(), startMailServer()]);
  });
  after(() => Promise.all([ledger?.drop(), server?.stop()]));
  afterEach(() => {
    errors.length = 0;
    server.mails.length = 0;
  });

  it('says why and where to turn them on again, and is sent once by several workers', async () => {
    const payer = await newAutoPayer();
    const email = await findOwnerEmail(ledger.database, payer.accountId);
    for (const count of [1, 2]) {
      await decline(payer);
      await worker().sendOverdue();
      assert.deepEqual(server.mails, [], `${count}`);
    }
    await decline(payer);
    await Promise.all([1, 2, 3].map(() => worker().sendOverdue()));
    await worker().sendOverdue();
    assert.equal(server.mails.length, 1);
    const [{ recipients, raw }] = server.mails as [(typeof server.mails)[0]];
    assert.deepEqual(recipients, [email]);
    const text = raw.replaceAll('=\r\n', '');
    assert.match(text, /^Subject: Automatic top-ups were turned off for your Farebox account\r$/m);
    assert.match(text, /The last failure: The bank declined the saved card\./);
    assert.match(text, /https:\/\/console\.example\.com\/console\/balance/);
    await laterBy('1 hour');
    await worker().sendOverdue();
    assert.equal(server.mails.length, 1);
  });

  it('is sent once more when they were turned on and have turned themselves off again', async () => {
    const payer = await newAutoPayer();
    await decline(payer, true);
    await worker().sendOverdue();
    await setAutoTopUp(ledger.database, payer, SETTINGS);
    await decline(payer, true);
    await worker().sendOverdue();
    assert.equal(server.mails.length, 2);
  });

  it('waits for a mail server that is away, for up to three days', async () => {
    const away = worker(`smtp://127.0.0.1:${await choosePort()}`);
    await decline(await newAutoPayer(), true);
    await away.sendOverdue();
    assert.equal(errors.length, 1);
    await laterBy('4 minutes');
    await worker().sendOverdue();
    assert.deepEqual(server.mails, []);
    await laterBy('71 hours');
    await worker().sendOverdue();
    assert.equal(server.mails.length, 1);

    await decline(await newAutoPayer(), true);
    await away.sendOverdue();
    await laterBy('73 hours');
    await worker().sendOverdue();
    assert.equal(server.mails.length, 1);
    assert.match(errors.at(-1) ?? '', /gave up on mails/);
  });

  it('is not sent when the owner turned them off, or turned them on again before it was sent', async () => {
    const [removed, again, inTime] = [
      await newAutoPayer(),
      await newAutoPayer(),
      await newAutoPayer(),
    ];
    await decline(removed, true);
    await setAutoTopUp(ledger.database, removed, null);
    await decline(again, true);
    await setAutoTopUp(ledger.database, again, SETTINGS);
    await setAutoTopUp(ledger.database, inTime, null);
    await worker().sendOverdue();
    assert.deepEqual(server.mails, []);
  });

  function worker(smtpUrl = server.urlFor('p@ss')) {
    return autoTopUpMails({
      config: {
        consoleUrl: 'https://console.example.com',
        mail: { smtpUrl, from: 'Farebox <billing@example.com>', isKept: false },
      },
      database: ledger.database,
      log: pino({ level: 'error' }, { write: (line) => void errors.push(line) }),
    });
  }

  async function newAutoPayer(): Promise<Payer> {
    const { database } = ledger;
    const payer = await newPayer(database);
    await payer.topUp(FIVE);
    await changeConsent(database, payer.consumerId, { ceiling: HUNDRED, givenBy: 'operator' });
    await setAutoTopUp(database, payer, SETTINGS);
    return payer;
  }

  /** A charge asks for a top-up, and the bank declines it. */
  async function decline(payer: Payer, isFinal = false): Promise<void> {
    const { database } = ledger;
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
    ledger.database.query(sql.typeAlias('nothing')`
      update farebox.auto_top_ups set mail_owed_at = mail_owed_at - ${time}::interval,
        mail_tried_at = mail_tried_at - ${time}::interval
    `);
});
