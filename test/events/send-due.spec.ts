/**
 * When an endpoint counts as failing, and the mail about one that was disabled: it gets lost neither with its process nor with
 * a mail server.
 */
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { sendDue } from '../../src/events/send-due.ts';
import { WebhookSigner } from '../../src/events/signing.ts';
import { mailSender, type Mail } from '../../src/mail/send.ts';
import { sql } from '../../src/store/database.ts';
import { postTest, recordFailed } from '../../src/store/events/deliveries.ts';
import {
  disableWebhookEndpoint,
  findWebhookEndpoint,
  makeWebhookEndpoint,
} from '../../src/store/events/webhook-endpoints.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { startMailServer } from '../support/mail-server.ts';
import { newPayer } from '../support/payer.ts';

describe('an endpoint', () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openTestLedger();
  });
  after(() => ledger?.drop());

  it('does not count as failing from then on when it refuses an old event that was sent again', async () => {
    const { database } = ledger;
    const { id, accountId } = await endpointIn(ledger);
    const failing = async (days: number) => {
      const event = await postTest(database, { id, accountId }, {});
      await database.query(sql.typeAlias('nothing')`
        update farebox.events set created_at = now() - make_interval(days => ${days}) where id = ${event.id}
      `);
      const isLate = await recordFailed(
        database,
        {
          endpointId: id,
          eventId: event.id,
          attempts: 0,
          durationMs: 1,
          responseStatus: 500,
          responseBody: '',
          error: null,
        },
        1,
      );
      assert.equal(isLate, false);
      return (await findWebhookEndpoint(database, { id }))?.failingSince;
    };
    assert.equal(await failing(6), null);
    assert.notEqual(await failing(0), null);
  });
});

describe('the mail about an endpoint that was disabled', () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openTestLedger();
  });
  after(() => ledger?.drop());

  it('is sent by the next process or attempt until a mail server has it, and then no more', async () => {
    const id = await endpoint();
    // Its process was killed after that was committed.
    await ledger.database.transaction((tx) => disableWebhookEndpoint(tx, id, 'failing'));
    const busy = new Error('421 try again later');
    await assert.rejects(
      send(id, () => Promise.reject(busy)),
      busy,
    );
    const mails: Mail[] = [];
    const accept = async (mail: Mail) => mails.push(mail) > 0;
    assert.equal((await send(id, accept)).status, 'disabled');
    await send(id, accept);
    assert.deepEqual(
      mails.map(({ subject }) => subject),
      ['Your webhook endpoint at example.com was disabled'],
    );
    assert.match(mails[0]?.body ?? '', /has not accepted an event for five days/);
  });

  it('is not retried when there is no such recipient', async () => {
    const server = await startMailServer();
    const { database } = ledger;
    const id = await endpoint();
    await database.transaction((tx) => disableWebhookEndpoint(tx, id, 'gone'));
    const config = { smtpUrl: server.urlFor('p@ss'), from: 'billing@example.com', isKept: false };
    const smtp = mailSender({ config, database, log: pino({ level: 'silent' }) });
    await send(id, (mail) => smtp({ ...mail, recipient: 'nobody@refused.example' }));
    await send(id, () => assert.fail('sent again'));
    await server.stop();
  });

  it('is not sent when the owner disabled it', async () => {
    const id = await endpoint();
    await ledger.database.transaction((tx) => disableWebhookEndpoint(tx, id, 'owner'));
    await send(id, () => assert.fail('sent'));
  });

  const endpoint = async () => (await endpointIn(ledger)).id;

  const send = (id: string, tell: (mail: Mail) => Promise<boolean>) =>
    sendDue(
      {
        database: ledger.database,
        signer: new WebhookSigner(new Map([[1, 'a master secret']])),
        allowPrivate: false,
        retryMs: 1,
        tell,
      },
      id,
    );
});

async function endpointIn({ database }: TestLedger) {
  const { accountId } = await newPayer(database);
  const settings = { url: 'https://example.com/events', types: null, description: '' };
  const made = await makeWebhookEndpoint(database, accountId, 1, settings);
  assert.ok('endpoint' in made);
  return made.endpoint;
}
