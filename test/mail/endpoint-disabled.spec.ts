/** The mail about a webhook endpoint that was disabled: one each time, even if a process or the mail server is down. */
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { wireId } from '../../src/domain/ids.ts';
import type { DisabledReason } from '../../src/domain/webhook-endpoint.ts';
import { endpointMails } from '../../src/mail/endpoint-disabled.ts';
import { sql } from '../../src/store/database.ts';
import { takeDisabled, settleDisabled } from '../../src/store/events/disabled-mails.ts';
import {
  changeWebhookEndpoint,
  deleteWebhookEndpoint,
  disableWebhookEndpoint,
  makeWebhookEndpoint,
  type WhichEndpoint,
} from '../../src/store/events/webhook-endpoints.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { startMailServer } from '../support/mail-server.ts';
import { newPayer } from '../support/payer.ts';
import { choosePort } from '../support/ports.ts';

describe('the mail about a webhook endpoint that was disabled', () => {
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

  it('says why, and is sent once even with several workers', async () => {
    const endpoint = await newEndpoint();
    await disable(endpoint, 'failing');
    await Promise.all([1, 2, 3].map(() => worker().sendOverdue()));
    await laterBy('1 hour');
    await worker().sendOverdue();
    assert.equal(server.mails.length, 1);
    const text = server.mails[0]?.raw.replaceAll('=\r\n', '') ?? '';
    assert.match(text, /^Subject: Your webhook endpoint at example\.com was disabled\r$/m);
    assert.ok(text.includes(wireId('webhookEndpoint', endpoint.id)));
    assert.match(text, /has not accepted an event for five days/);
  });

  it('waits up to three days for a mail server that is down', async () => {
    await disable(await newEndpoint(), 'gone');
    await sendWhileAway();
    assert.equal(errors.length, 1);
    await laterBy('4 minutes');
    await worker().sendOverdue();
    assert.deepEqual(server.mails, []);
    await laterBy('71 hours');
    await worker().sendOverdue();
    assert.equal(server.mails.length, 1);

    await disable(await newEndpoint(), 'gone');
    await sendWhileAway();
    await laterBy('73 hours');
    await worker().sendOverdue();
    assert.equal(server.mails.length, 1);
    assert.match(errors.at(-1) ?? '', /gave up on mails/);
  });

  it('waits up to three days for a worker that has a mail server', async () => {
    await disable(await newEndpoint(), 'gone');
    await workerWith(undefined).sendOverdue();
    await worker().sendOverdue();
    assert.equal(server.mails.length, 1);

    await disable(await newEndpoint(), 'gone');
    await laterBy('73 hours');
    await workerWith(undefined).sendOverdue();
    await worker().sendOverdue();
    assert.equal(server.mails.length, 1);
  });

  it('has three days from the first attempt when the previous release made it due', async () => {
    await disable(await newEndpoint(), 'gone');
    await ledger.database.query(sql.typeAlias('nothing')`
      update farebox.webhook_endpoints set mail_owed_at = null, mail_noted_at = now() - interval '1 year'
      where is_mail_due
    `);
    await sendWhileAway();
    await laterBy('71 hours');
    await worker().sendOverdue();
    assert.equal(server.mails.length, 1);
  });

  it('is sent again if the endpoint was enabled and disabled again while the first mail was being sent', async () => {
    const { database } = ledger;
    const endpoint = await newEndpoint();
    await disable(endpoint, 'gone');
    const owed = await takeDisabled(database, 0);
    assert.ok(owed);
    await enable(endpoint, true);
    await disable(endpoint, 'gone');
    await settleDisabled(database, owed);
    await worker().sendOverdue();
    assert.equal(server.mails.length, 1);
  });

  it('is not retried if the recipient does not exist', async () => {
    const endpoint = await newEndpoint();
    await ledger.database.query(sql.typeAlias('nothing')`
      update farebox.accounts set email = 'nobody@refused.example' where id = ${endpoint.accountId}
    `);
    await disable(endpoint, 'gone');
    await worker().sendOverdue();
    assert.equal(errors.length, 1);
    assert.equal(await takeDisabled(ledger.database, 0), null);
  });

  it('is not sent if the owner disabled, enabled or deleted the endpoint', async () => {
    const [own, again, deleted] = [await newEndpoint(), await newEndpoint(), await newEndpoint()];
    await enable(own, false);
    await disable(again, 'gone');
    await enable(again, true);
    await disable(deleted, 'gone');
    await deleteWebhookEndpoint(ledger.database, deleted);
    await worker().sendOverdue();
    assert.deepEqual(server.mails, []);
  });

  const worker = () => workerWith(server.urlFor('p@ss'));

  const sendWhileAway = async () =>
    workerWith(`smtp://127.0.0.1:${await choosePort()}`).sendOverdue();

  function workerWith(smtpUrl: string | undefined) {
    return endpointMails({
      config: {
        consoleUrl: 'https://console.example.com',
        mail: { smtpUrl, from: 'Farebox <billing@example.com>', isKept: false },
      },
      database: ledger.database,
      log: pino({ level: 'error' }, { write: (line) => void errors.push(line) }),
    });
  }

  async function newEndpoint(): Promise<WhichEndpoint> {
    const { database } = ledger;
    const { accountId } = await newPayer(database);
    const settings = { url: 'https://example.com/events', types: null, description: '' };
    const made = await makeWebhookEndpoint(database, accountId, 1, settings);
    assert.ok('endpoint' in made);
    return made.endpoint;
  }

  const disable = ({ id }: WhichEndpoint, reason: DisabledReason) =>
    ledger.database.transaction((tx) => disableWebhookEndpoint(tx, id, reason));

  const enable = (endpoint: WhichEndpoint, isEnabled: boolean) =>
    changeWebhookEndpoint(ledger.database, endpoint, {
      url: undefined,
      types: undefined,
      description: undefined,
      isEnabled,
    });

  const laterBy = (time: string) =>
    ledger.database.query(sql.typeAlias('nothing')`
      update farebox.webhook_endpoints set mail_owed_at = mail_owed_at - ${time}::interval,
        mail_noted_at = mail_noted_at - ${time}::interval
    `);
});
