/** Endpoints that do not answer leave places of a worker to those of other accounts. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { SharedPlaces } from '../../src/domain/shared-places.ts';
import { sendDue } from '../../src/events/send-due.ts';
import { sql } from '../../src/store/database.ts';
import { postTest } from '../../src/store/events/deliveries.ts';
import { makeWebhookEndpoint } from '../../src/store/events/webhook-endpoints.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { startReceiver, type Receiver } from '../support/receiver.ts';
import { until } from '../support/stack.ts';
import { endpointIn, OLD, SENDING, signerWith } from './sending.ts';

describe('webhook endpoints that hang', () => {
  let ledger: TestLedger;
  let receiver: Receiver;

  before(async () => {
    ledger = await openTestLedger();
    receiver = await startReceiver();
  });
  after(async () => {
    await receiver?.stop();
    await ledger?.drop();
  });

  it('leave places to the endpoints of other accounts, and get their events later', async () => {
    const { database } = ledger;
    const hanging = await endpointIn(ledger, receiver.url);
    const settings = { url: receiver.url, types: null, description: '' };
    const made = await makeWebhookEndpoint(database, hanging.accountId, 1, settings);
    assert.ok('endpoint' in made);
    const other = await endpointIn(ledger, receiver.url);
    for (const each of [hanging, made.endpoint, other]) await postTest(database, each, {});

    const places = new SharedPlaces(2, 1);
    const deps = { ...SENDING, database, signer: signerWith(OLD), places };
    const held: ServerResponse[] = [];
    receiver.respondWith((response) => void held.push(response));
    const sending = sendDue(deps, hanging.id);
    await until(() => held.length === 1);
    receiver.respondWith();
    const { status, nextInMs } = await sendDue(deps, made.endpoint.id);
    assert.equal(status, 'active');
    assert.ok((nextInMs ?? 0) > 0, String(nextInMs));
    assert.equal(receiver.events.length, 1);
    assert.equal((await sendDue(deps, other.id)).nextInMs, null);
    assert.equal(receiver.events.length, 2);

    for (const response of held) response.writeHead(200).end();
    await sending;
    assert.equal((await sendDue(deps, made.endpoint.id)).nextInMs, null);
    assert.equal(receiver.events.length, 3);
  });

  it('hold no place while they are disabled or deleted', async () => {
    const { id } = await endpointIn(ledger, receiver.url);
    await ledger.database.query(sql.typeAlias('nothing')`
      delete from farebox.webhook_endpoints where id = ${id}
    `);
    const deps = { ...SENDING, database: ledger.database, signer: signerWith(OLD) };
    const none = new SharedPlaces(0, 0);
    assert.equal((await sendDue({ ...deps, places: none }, id)).status, null);
  });
});
