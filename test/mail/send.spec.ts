/**
 * Mail by SMTP, to a real mail server. test/console/sign-in.slow.spec.ts tests the mail that DEV_MAIL stores
 * instead of sending.
 */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { pino } from 'pino';
import { mailSender } from '../../src/mail/send.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { startMailServer } from '../support/mail-server.ts';

const MAIL = {
  recipient: 'owner@example.com',
  subject: 'Approve a charge of $4.00?',
  body: 'Open this link.\n\nhttps://billing.example/approvals/1?token=a=b\n.\nThe end, für Ärger.\n',
};

describe('mail by SMTP', () => {
  const errors: string[] = [];
  let ledger: TestLedger;
  let server: Awaited<ReturnType<typeof startMailServer>>;

  before(async () => {
    [ledger, server] = await Promise.all([openTestLedger(1), startMailServer()]);
  });
  after(() => Promise.all([ledger?.drop(), server?.stop()]));

  const senderTo = (smtpUrl: string, from = 'Farebox <billing@example.com>') =>
    mailSender({
      config: { smtpUrl, from, isKept: false },
      database: ledger.database,
      log: pino({ level: 'error' }, { write: (line) => void errors.push(line) }),
    });

  it('reaches its recipient, with the sender, the subject and the whole text', async () => {
    const send = senderTo(server.urlFor('p@ss'));
    assert.equal(await send(MAIL), 'sent');
    const [{ from, recipients, raw }] = server.mails.splice(0) as [(typeof server.mails)[0]];
    assert.deepEqual(
      { from, recipients },
      { from: 'billing@example.com', recipients: [MAIL.recipient] },
    );
    assert.match(raw, /^From: Farebox <billing@example\.com>\r$/m);
    assert.match(raw, /^To: owner@example\.com\r$/m);
    assert.match(raw, /^Subject: Approve a charge of \$4\.00\?\r$/m);
    assert.equal(textOf(raw), MAIL.body);
  });

  for (const separator of ['\r\nBcc: ', ', ', '; ', '> <']) {
    it(`never has a second recipient, whose address follows ${JSON.stringify(separator)}`, async () => {
      const recipient = `owner@example.com${separator}other@example.com`;
      // The server gets the text as one address, which is none.
      await assert.rejects(senderTo(server.urlFor('p@ss'))({ ...MAIL, recipient }), {
        command: 'RCPT TO',
        responseCode: 501,
      });
      assert.deepEqual(server.mails, []);
    });
  }

  it('is not tried again when the server refuses the recipient, and the next mail is sent', async () => {
    const send = senderTo(server.urlFor('p@ss'));
    assert.equal(await send({ ...MAIL, recipient: 'nobody@refused.example' }), 'refused');
    assert.match(errors.splice(0).join(), /no such user/);
    assert.equal(await send(MAIL), 'sent');
    assert.equal(server.mails.splice(0).length, 1);
  });

  it('fails when the server refuses the sender, which an operator can fix', async () => {
    const send = senderTo(server.urlFor('p@ss'), 'Farebox <billing@refused.example>');
    await assert.rejects(send(MAIL), /sender not allowed/);
    assert.deepEqual(server.mails, []);
  });

  it('fails when the server refuses each recipient because of us, which an operator can fix', async () => {
    const replies = [
      [554, '5.7.1 <owner@example.com>: Relay access denied'],
      [550, 'relay not permitted'],
      [553, "sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)"],
      [553, '5.7.1 <billing@example.com>: Sender address rejected: not owned by user'],
      [550, '5.1.8 <billing@example.com>: Sender address rejected: Domain not found'],
      [530, '5.7.0 Authentication required'],
      [503, 'AUTH first'],
      [552, '5.2.2 Mailbox full'],
    ] as const;
    try {
      for (const [code, text] of replies) {
        server.refuseAll({ code, text });
        await assert.rejects(senderTo(server.urlFor('p@ss'))(MAIL), { responseCode: code }, text);
      }
      for (const text of [
        '5.1.1 <relay@example.com>: User unknown',
        // As Postfix says it where it relays to the server of the mailboxes.
        '5.1.1 <a@example.com>: Recipient address rejected: User unknown in relay recipient table',
        'no such user here (10.5.7.1)',
        'Unrouteable address',
      ]) {
        server.refuseAll({ code: 550, text });
        assert.equal(await senderTo(server.urlFor('p@ss'))(MAIL), 'refused', text);
      }
    } finally {
      server.refuseAll(undefined);
      errors.length = 0;
    }
    assert.deepEqual(server.mails, []);
  });

  it('does not name the recipient in its log or its error, although the server does', async () => {
    const send = senderTo(server.urlFor('p@ss'));
    try {
      for (const text of ['5.7.1 <Owner@example.com>: Relay access denied', 'owner@example.com?']) {
        server.refuseAll({ code: 550, text });
        await send(MAIL).catch((err: unknown) => errors.push(inspect(err, { depth: 9 })));
      }
    } finally {
      server.refuseAll(undefined);
    }
    const [failed = '', logged = ''] = errors.splice(0);
    assert.match(failed, /550 5\.7\.1 <\.\.\.>: Relay access denied/);
    assert.match(logged, /recipient is refused/);
    assert.doesNotMatch(failed + logged, /owner/i);
  });

  it('fails when the password is wrong, and does not repeat it', async () => {
    const send = senderTo(server.urlFor('another-secret'));
    await assert.rejects(send(MAIL), (error: Error) => {
      assert.match(error.message, /wrong user or password/);
      assert.doesNotMatch(JSON.stringify(error) + error.stack, /another-secret/);
      return true;
    });
    assert.deepEqual(server.mails, []);
  });
});

/** The decoded text of a mail whose transfer encoding is quoted-printable, with its line breaks as they were given. */
function textOf(raw: string): string {
  const [head, ...parts] = raw.split('\r\n\r\n');
  assert.match(head ?? '', /^Content-Transfer-Encoding: quoted-printable\r?$/m);
  const bytes = parts
    .join('\r\n\r\n')
    .replaceAll('=\r\n', '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString().replaceAll('\r\n', '\n');
}
