/**
 * The mail about an automatic top-up that waits for its owner: it gets lost neither with its process nor with
 * a mail server.
 */
import assert from 'node:assert/strict';
import { pino } from 'pino';
import type { MailConfig } from '../../src/config.ts';
import { wireId } from '../../src/domain/ids.ts';
import { asMicros } from '../../src/domain/money.ts';
import { confirmTopUpMailer } from '../../src/mail/confirm-top-up.ts';
import { listMails } from '../../src/store/console/mails.ts';
import { setAutoTopUp, takeUpAutoTopUp } from '../../src/store/top-ups/auto-top-ups.ts';
import {
  recordAuthenticationAsked,
  recordOwnerMailed,
} from '../../src/store/top-ups/authentication.ts';
import { changeConsent } from '../../src/store/top-ups/monthly-ceiling.ts';
import { getTopUp, listTopUpsOf, type TopUp } from '../../src/store/top-ups/top-ups.ts';
import { sql } from '../../src/store/database.ts';
import { takeNotices } from '../../src/store/outbox.ts';
import { sweep } from '../../src/temporal/sweep.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { startMailServer } from '../support/mail-server.ts';
import { newPayer } from '../support/payer.ts';
import { choosePort } from '../support/ports.ts';
import { until } from '../support/stack.ts';

describe('the mail about an automatic top-up that waits for its owner', () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openTestLedger();
  });
  after(() => ledger?.drop());

  it('is sent by the next process or attempt until a mail server has it, and then no more', async () => {
    const { id } = await automaticTopUp();
    const isDue = () => recordAuthenticationAsked(ledger.database, id);
    const topUp = await read(id);
    assert.equal(await isDue(), true);
    // Its process was killed here.
    assert.equal(await isDue(), true);
    const errors: string[] = [];
    mailer(`smtp://127.0.0.1:${await choosePort()}`, errors)(topUp);
    await until(() => errors.length > 0);
    assert.match(errors[0] ?? '', /a mail could not be sent/);
    assert.equal(await isDue(), true);
    mailer(undefined, errors)(topUp);
    await until(async () => !(await isDue()));
    const mails = await listMails(ledger.database);
    assert.deepEqual(
      mails.map(({ subject }) => subject),
      ['Confirm a top-up at your bank'],
    );
  });

  it('says what the bank shows, with the tax', async () => {
    const topUp = await automaticTopUp();
    mailer(undefined, [])({ ...topUp, taxMicros: asMicros(440_000) });
    const mail = await until(async () => {
      const mails = await listMails(ledger.database);
      return mails.find(({ body }) => body.includes(wireId('topUp', topUp.id)));
    });
    assert.match(mail.body, /automatic top-up of \$5\.00, plus \$0\.44 tax \(\$5\.44 in total\):/);
  });

  it('is left to a new run of the workflow when it is late, since that may have been terminated, but not each minute', async () => {
    const { database } = ledger;
    const { id } = await automaticTopUp();
    const noted = async (ageMinutes: number, canMail = true) => {
      await database.query(sql.typeAlias('nothing')`
        delete from farebox.outbox
      `);
      await database.query(sql.typeAlias('nothing')`
        update farebox.top_ups set updated_at = updated_at - make_interval(mins => ${ageMinutes}) where id = ${id}
      `);
      await sweep(database, pino({ level: 'silent' }), canMail);
      const notices = await takeNotices(database, 10, 1_000);
      return notices.map(({ topic, subjectId }) => [topic, subjectId]);
    };
    assert.deepEqual(await noted(60), []);
    assert.equal(await recordAuthenticationAsked(database, id), true);
    assert.deepEqual(await noted(1), []);
    assert.deepEqual(await noted(15, false), []);
    assert.deepEqual(await noted(0), [['payment_reported', id]]);
    assert.deepEqual(await noted(1), []);
    await recordOwnerMailed(database, id);
    assert.deepEqual(await noted(60), []);
  });

  it('is not retried when there is no such recipient', async () => {
    const server = await startMailServer();
    try {
      const topUp = await automaticTopUp();
      await ledger.database.query(sql.typeAlias('nothing')`
        update farebox.accounts set email = 'nobody@refused.example' where id = ${topUp.accountId}
      `);
      const isDue = () => recordAuthenticationAsked(ledger.database, topUp.id);
      assert.equal(await isDue(), true);
      const errors: string[] = [];
      mailer(server.urlFor('p@ss'), errors)(topUp);
      await until(async () => !(await isDue()));
      assert.equal(errors.length, 1);
    } finally {
      await server.stop();
    }
  });

  it('is left to a worker that has a mail server', async () => {
    const topUp = await automaticTopUp();
    const isDue = () => recordAuthenticationAsked(ledger.database, topUp.id);
    assert.equal(await isDue(), true);
    const errors: string[] = [];
    const tell = mailer(undefined, errors, false);
    // The second attempt begins after the end of the first one.
    await until(() => {
      tell(topUp);
      return errors.length > 1;
    });
    assert.match(errors[0] ?? '', /SMTP_URL is not set/);
    assert.equal(await isDue(), true);
  });

  function mailer(smtpUrl: string | undefined, errors: string[], isKept = true) {
    const mail: MailConfig = { smtpUrl, from: 'Farebox <billing@example.com>', isKept };
    const log = pino({ level: 'error' }, { write: (line) => void errors.push(line) });
    const config = { consoleUrl: 'https://console.example.com', mail };
    return confirmTopUpMailer({ config, database: ledger.database, log });
  }

  async function automaticTopUp(): Promise<TopUp> {
    const { database } = ledger;
    const payer = await newPayer(database);
    const [five, hundred] = [asMicros(5_000_000), asMicros(100_000_000)];
    await payer.topUp(five);
    await changeConsent(database, payer.consumerId, {
      ceilingMicros: hundred,
      givenBy: 'operator',
    });
    const settings = { thresholdMicros: five, amountMicros: five, ceilingMicros: hundred };
    await setAutoTopUp(database, payer, settings);
    await payer.charge(1);
    for (const notice of await takeNotices(database, 1_000, 0)) {
      if (notice.topic === 'auto_top_up') await takeUpAutoTopUp(database, notice);
    }
    const topUps = await listTopUpsOf(database, payer.consumerId, { limit: 1 });
    assert.equal(topUps[0]?.automatic, true);
    return topUps[0];
  }

  const read = (id: string) => getTopUp(ledger.database, id);
});
