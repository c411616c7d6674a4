/** The mail about a webhook endpoint that was disabled: one each time, even if a process or the mail server is down. */
import assert from 'node:assert/strict';
import { wireId } from '../../src/domain/ids.ts';
import type { DisabledReason } from '../../src/domain/webhook-endpoint.ts';
import { endpointMails } from '../../src/mail/endpoint-disabled.ts';
import { ensureTestAccount } from '../../src/store/accounts/test-accounts.ts';
import { sql } from '../../src/store/database.ts';
import { takeDisabled, recordDisabledMailed } from '../../src/store/events/disabled-mails.ts';
import {
  changeWebhookEndpoint,
  deleteWebhookEndpoint,
  disableWebhookEndpoint,
  makeWebhookEndpoint,
  type WhichEndpoint,
} from '../../src/store/events/webhook-endpoints.ts';
import { openOwedMailTest, type OwedMailTest } from '../support/owed-mails.ts';
import { newPayer } from '../support/payer.ts';

describe('the mail about a webhook endpoint that was disabled', () => {
  let mails: OwedMailTest;

  before(async () => {
    mails = await openOwedMailTest(endpointMails);
  });
  after(() => mails?.close());
  afterEach(() => mails.forget());

  it('says why, and is sent once even with several workers', async () => {
    const endpoint = await newEndpoint();
    await disable(endpoint, 'failing');
    await Promise.all([1, 2, 3].map(() => mails.worker().sendOverdue()));
    await laterBy('1 hour');
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 1);
    const text = mails.sent[0]?.raw.replaceAll('=\r\n', '') ?? '';
    assert.match(text, /^Subject: A webhook endpoint was disabled\r$/m);
    assert.ok(text.includes(wireId('webhookEndpoint', endpoint.id)));
    assert.match(text, /has not accepted an event for five days/);
    // Mail programs turn an address into a link, and the holder of a key chooses it.
    assert.doesNotMatch(text, /example\.com\/|at example\.com/);
  });

  it('is sent once a day for an endpoint that is enabled and disabled again, and not for a new endpoint', async () => {
    const endpoint = await newEndpoint();
    for (let times = 0; times < 3; times += 1) {
      await disable(endpoint, 'gone');
      await mails.worker().sendOverdue();
      await enable(endpoint, true);
    }
    assert.equal(mails.sent.length, 1);
    await laterBy('25 hours');
    await disable(endpoint, 'gone');
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 2);

    await disable(await makeEndpoint(), 'gone');
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 2);
  });

  it('leads to the console for a live endpoint, and to the API for one of test mode, which the console does not show', async () => {
    const live = await newEndpoint();
    const { accountId } = await ensureTestAccount(mails.database, live.accountId, 16);
    const test = await newEndpoint(accountId);
    for (const endpoint of [live, test]) await disable(endpoint, 'gone');
    await mails.worker().sendOverdue();
    const [ofLive, ofTest] = [live, test].map(({ id }) =>
      mails.sent
        .map(({ raw }) => raw.replaceAll('=\r\n', ''))
        .find((text) => text.includes(wireId('webhookEndpoint', id))),
    );
    assert.match(ofLive ?? '', /^Subject: A webhook endpoint was disabled\r$/m);
    assert.match(ofLive ?? '', /enable it again in the console/);
    assert.match(ofTest ?? '', /^Subject: A webhook endpoint for test mode was disabled\r$/m);
    assert.match(ofTest ?? '', /enable it again with PATCH \/v1\/webhook-endpoints\/:id/);
    assert.doesNotMatch(ofTest ?? '', /in the console/);
  });

  it('waits up to three days for a mail server that is down', async () => {
    await disable(await newEndpoint(), 'gone');
    await mails.sendWhileDown();
    assert.equal(mails.errors.length, 1);
    await laterBy('4 minutes');
    await mails.worker().sendOverdue();
    assert.deepEqual(mails.sent, []);
    await laterBy('71 hours');
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 1);

    await disable(await newEndpoint(), 'gone');
    await mails.sendWhileDown();
    await laterBy('73 hours');
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 1);
    assert.match(mails.errors.at(-1) ?? '', /gave up on mails/);
  });

  it('waits up to three days for a worker that has a mail server', async () => {
    await disable(await newEndpoint(), 'gone');
    await mails.workerWithout().sendOverdue();
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 1);

    await disable(await newEndpoint(), 'gone');
    await laterBy('73 hours');
    await mails.workerWithout().sendOverdue();
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 1);
  });

  it('is sent again if the endpoint was enabled and disabled again while the first mail was being sent', async () => {
    const { database } = mails;
    const endpoint = await newEndpoint();
    await disable(endpoint, 'gone');
    const owed = await takeDisabled(database, 0);
    assert.ok(owed);
    await enable(endpoint, true);
    await disable(endpoint, 'gone');
    await recordDisabledMailed(database, owed);
    await mails.worker().sendOverdue();
    assert.equal(mails.sent.length, 1);
  });

  it('is not retried if the recipient does not exist', async () => {
    const endpoint = await newEndpoint();
    await mails.database.query(sql.typeAlias('nothing')`
      update farebox.accounts set email = 'nobody@refused.example' where id = ${endpoint.accountId}
    `);
    await disable(endpoint, 'gone');
    await mails.worker().sendOverdue();
    assert.equal(mails.errors.length, 1);
    assert.equal(await takeDisabled(mails.database, 0), null);
  });

  it('is not sent if the owner disabled, enabled or deleted the endpoint', async () => {
    const [own, again, deleted] = [await newEndpoint(), await newEndpoint(), await newEndpoint()];
    await enable(own, false);
    await disable(again, 'gone');
    await enable(again, true);
    await disable(deleted, 'gone');
    await deleteWebhookEndpoint(mails.database, deleted);
    await mails.worker().sendOverdue();
    assert.deepEqual(mails.sent, []);
  });

  /** One that is old enough for a mail. */
  async function newEndpoint(of?: string): Promise<WhichEndpoint> {
    const endpoint = await makeEndpoint(of);
    await mails.database.query(sql.typeAlias('nothing')`
      update farebox.webhook_endpoints set created_at = created_at - interval '2 days' where id = ${endpoint.id}
    `);
    return endpoint;
  }

  async function makeEndpoint(of?: string): Promise<WhichEndpoint> {
    const { database } = mails;
    const accountId = of ?? (await newPayer(database)).accountId;
    const settings = { url: 'https://example.com/events', types: null, description: '' };
    const made = await makeWebhookEndpoint(database, accountId, 1, settings);
    assert.ok('endpoint' in made);
    return made.endpoint;
  }

  const disable = ({ id }: WhichEndpoint, reason: DisabledReason) =>
    mails.database.transaction((tx) => disableWebhookEndpoint(tx, id, reason));

  const enable = (endpoint: WhichEndpoint, isEnabled: boolean) =>
    changeWebhookEndpoint(mails.database, endpoint, {
      url: undefined,
      types: undefined,
      description: undefined,
      isEnabled,
    });

  const laterBy = (time: string) =>
    mails.database.query(sql.typeAlias('nothing')`
      update farebox.webhook_endpoints set mail_owed_at = mail_owed_at - ${time}::interval,
        mail_tried_at = mail_tried_at - ${time}::interval
    `);
});
