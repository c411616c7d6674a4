/**
 * When an endpoint counts as failing, how events for one that has ended are dropped, and the mail about one that was
 * disabled: it gets lost neither with its process nor with a mail server.
 */
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { wireId } from '../../src/domain/ids.ts';
import { sendDue, type SendDeps } from '../../src/events/send-due.ts';
import { WebhookSigner } from '../../src/events/signing.ts';
import { mailSender, type Mail } from '../../src/mail/send.ts';
import { readBacklog } from '../../src/store/audit/backlog.ts';
import { sql } from '../../src/store/database.ts';
import {
  listDeliveries,
  listDueDeliveries,
  postTest,
  recordFailed,
} from '../../src/store/events/deliveries.ts';
import { postEvent } from '../../src/store/events/events.ts';
import {
  changeWebhookEndpoint,
  deleteWebhookEndpoint,
  disableWebhookEndpoint,
  findWebhookEndpoint,
  makeWebhookEndpoint,
  type WhichEndpoint,
} from '../../src/store/events/webhook-endpoints.ts';
import { takeNotices } from '../../src/store/outbox.ts';
import { sweep } from '../../src/temporal/sweep.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { startMailServer } from '../support/mail-server.ts';
import { newPayer } from '../support/payer.ts';
import { startReceiver, type Receiver } from '../support/receiver.ts';
import { holdEndpoint } from '../support/row-locks.ts';

describe('an endpoint', () => {
  let ledger: TestLedger;
  let receiver: Receiver | undefined;

  before(async () => {
    ledger = await openTestLedger();
  });
  after(async () => {
    await receiver?.stop();
    await ledger?.drop();
  });

  it('does not count as failing from then on when it refuses an old event that was sent again', async () => {
    const { database } = ledger;
    const { id, accountId } = await endpointIn(ledger);
    const failing = async (days: number) => {
      const event = await postTest(database, { id, accountId }, {});
      await database.query(sql.typeAlias('nothing')`
        update farebox.events set created_at = now() - make_interval(days => ${days}) where id = ${event.id}
      `);
      await recordFailed(
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
      const endpoint = await findWebhookEndpoint(database, { id });
      assert.equal(endpoint?.status, 'active');
      return endpoint.failingSince;
    };
    assert.equal(await failing(6), null);
    assert.notEqual(await failing(0), null);
  });

  it('that fails is not said to wait for us, although its events are due', async () => {
    const { database } = ledger;
    const { id, accountId } = await endpointIn(ledger);
    await postTest(database, { id, accountId }, {});
    const due = async () =>
      (await readBacklog(database)).waiting.find(({ what }) => what === 'events')?.count;
    const before = await due();
    assert.ok(before);
    await database.query(sql.typeAlias('nothing')`
      update farebox.webhook_endpoints set failing_since = now() where id = ${id}
    `);
    assert.equal(await due(), before - 1);
  });

  it('that accepts an event once more is not disabled by another one that it refused meanwhile', async () => {
    const { database } = ledger;
    receiver = await startReceiver();
    const { id, accountId } = await endpointIn(ledger, receiver.url);
    const refused = await postTest(database, { id, accountId }, {});
    await postTest(database, { id, accountId }, {});
    await database.query(sql.typeAlias('nothing')`
      update farebox.webhook_endpoints set failing_since = now() - interval '6 days' where id = ${id}
    `);
    const held = await holdEndpoint(ledger.url, id);
    // The refusal is recorded first. While it is, the other answer waits to be recorded.
    receiver.respondWith((response, event) => {
      if (event.id === wireId('event', refused.id)) response.writeHead(500).end();
      else void held.waited(1).then(() => response.writeHead(200).end());
    });
    const sending = sendIn(ledger, id, async () => 'sent');
    await held.waited(2);
    await held.release();
    assert.equal((await sending).status, 'active');
  });
});

describe('an endpoint that is enabled again', () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openTestLedger();
  });
  after(() => ledger?.drop());

  it('does not get an event that was posted by a transaction beside the one that disabled it', async () => {
    const { database } = ledger;
    const endpoint = await endpointIn(ledger);
    const unchanged = { url: undefined, types: undefined, description: undefined };
    const enable = (isEnabled: boolean) =>
      changeWebhookEndpoint(database, endpoint, { ...unchanged, isEnabled });
    await database.transaction(async (tx) => {
      await postEvent(tx, endpoint.accountId, 'key.revoked', {});
      await enable(false);
    });
    await enable(true);
    assert.deepEqual(await listDueDeliveries(database, endpoint.id, 10), []);
    const [delivery] = await listDeliveries(database, endpoint.id, undefined, { limit: 10 });
    assert.equal(delivery?.status, 'failed');
  });
});

describe('an event that was posted by a transaction beside the one that ended its endpoint', () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openTestLedger();
  });
  after(() => ledger?.drop());

  async function postBeside(end: (endpoint: WhichEndpoint) => Promise<unknown>) {
    const { database } = ledger;
    const endpoint = await endpointIn(ledger);
    await database.transaction(async (tx) => {
      await postEvent(tx, endpoint.accountId, 'key.revoked', {});
      await end(endpoint);
    });
    // The notice of the event starts this.
    await sendIn(ledger, endpoint.id, async () => 'sent');
    const { waiting } = await readBacklog(database);
    assert.equal(waiting.find(({ what }) => what === 'events')?.count, 0);
    return listDeliveries(database, endpoint.id, undefined, { limit: 10 });
  }

  it('counts as failed, and not as waiting, when the endpoint is disabled', async () => {
    const [delivery] = await postBeside(({ id }) =>
      ledger.database.transaction((tx) => disableWebhookEndpoint(tx, id, 'owner')),
    );
    assert.equal(delivery?.status, 'failed');
  });

  it('leaves no delivery when the endpoint is deleted', async () => {
    assert.deepEqual(
      await postBeside((which) => deleteWebhookEndpoint(ledger.database, which)),
      [],
    );
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
    const accept = async (mail: Mail) => {
      mails.push(mail);
      return 'sent' as const;
    };
    assert.equal((await send(id, accept)).status, 'disabled');
    await send(id, accept);
    assert.deepEqual(
      mails.map(({ subject }) => subject),
      ['Your webhook endpoint at example.com was disabled'],
    );
    assert.match(mails[0]?.body ?? '', /has not accepted an event for five days/);
  });

  it('is left to a new run of the workflow when it is late, since that may have been terminated, but not each minute', async () => {
    const { database } = ledger;
    const id = await endpoint();
    await database.transaction((tx) => disableWebhookEndpoint(tx, id, 'gone'));
    const noted = async (ageMinutes: number, canMail = true) => {
      await database.query(sql.typeAlias('nothing')`
        delete from farebox.outbox
      `);
      await database.query(sql.typeAlias('nothing')`
        update farebox.webhook_endpoints set mail_noted_at = mail_noted_at - make_interval(mins => ${ageMinutes})
      `);
      await sweep(database, pino({ level: 'silent' }), canMail);
      return (await takeNotices(database, 10, 1_000)).map(({ subjectId }) => subjectId);
    };
    assert.deepEqual(await noted(1), []);
    assert.deepEqual(await noted(15, false), []);
    assert.deepEqual(await noted(0), [id]);
    assert.deepEqual(await noted(1), []);
    await send(id, async () => 'sent');
    assert.deepEqual(await noted(60), []);
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

  it('is left to a worker that has a mail server', async () => {
    const { database } = ledger;
    const id = await endpoint();
    await database.transaction((tx) => disableWebhookEndpoint(tx, id, 'gone'));
    const config = { smtpUrl: undefined, from: 'billing@example.com', isKept: false };
    await send(id, mailSender({ config, database, log: pino({ level: 'silent' }) }));
    const mails: Mail[] = [];
    await send(id, async (mail) => {
      mails.push(mail);
      return 'sent';
    });
    assert.equal(mails.length, 1);
  });

  it('is not sent when the owner disabled it', async () => {
    const id = await endpoint();
    await ledger.database.transaction((tx) => disableWebhookEndpoint(tx, id, 'owner'));
    await send(id, () => assert.fail('sent'));
  });

  const endpoint = async () => (await endpointIn(ledger)).id;

  const send = (id: string, tell: SendDeps['tell']) => sendIn(ledger, id, tell);
});

function sendIn({ database }: TestLedger, id: string, tell: SendDeps['tell']) {
  const signer = new WebhookSigner(new Map([[1, 'a master secret']]));
  return sendDue({ database, signer, allowPrivate: true, retryMs: 60_000, tell }, id);
}

async function endpointIn({ database }: TestLedger, url = 'https://example.com/events') {
  const { accountId } = await newPayer(database);
  const settings = { url, types: null, description: '' };
  const made = await makeWebhookEndpoint(database, accountId, 1, settings);
  assert.ok('endpoint' in made);
  return made.endpoint;
}
