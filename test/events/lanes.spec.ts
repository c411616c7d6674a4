/** An endpoint that leaves some events without an answer gets the others in time. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { Client } from 'pg';
import type { DeliveryStatus } from '../../src/domain/webhook-delivery.ts';
import { listDeliveries, postTest } from '../../src/store/events/deliveries.ts';
import { postEvent } from '../../src/store/events/events.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { startReceiver, type Receiver } from '../support/receiver.ts';
import { until } from '../support/stack.ts';
import { endpointIn, OLD, refuseIn, sendIn } from './sending.ts';

describe('an endpoint that does not answer one type of events', () => {
  let ledger: TestLedger;
  let receiver: Receiver | undefined;

  before(async () => {
    ledger = await openTestLedger();
  });
  afterEach(() => receiver?.stop());
  after(() => ledger?.drop());

  it('gets a new event before it has let one time out of many that are sent again', async () => {
    const { database } = ledger;
    receiver = await startReceiver();
    const which = await endpointIn(ledger, receiver.url);
    const { id, accountId } = which;
    for (let count = 0; count < 16; count += 1) {
      const refused = await postTest(database, which, {});
      await refuseIn(ledger, id, refused.id, 0);
    }
    await database.transaction((tx) => postEvent(tx, accountId, 'key.revoked', {}));
    const { isDelivered, attempts, end } = sendingBut('webhook_endpoint.test', id, receiver);
    await until(() => isDelivered(1));
    assert.deepEqual(await attempts('waiting'), Array(16).fill(1));
    // The lanes are free again for what is posted while the others have no answer.
    await database.transaction((tx) => postEvent(tx, accountId, 'key.revoked', {}));
    await until(() => isDelivered(2));
    assert.deepEqual(await attempts('waiting'), Array(16).fill(1));
    await end();
  });

  it('gets all other events before it has let one time out', async () => {
    const { database } = ledger;
    receiver = await startReceiver();
    const which = await endpointIn(ledger, receiver.url);
    await postTest(database, which, {});
    for (let count = 0; count < 20; count += 1) {
      await database.transaction((tx) => postEvent(tx, which.accountId, 'key.revoked', {}));
    }
    const { isDelivered, attempts, end } = sendingBut('webhook_endpoint.test', which.id, receiver);
    await until(() => isDelivered(20));
    assert.deepEqual(await attempts('waiting'), [0]);
    await end();
  });

  it('gets no more events from a worker that stops, but may still answer', async () => {
    const { database } = ledger;
    receiver = await startReceiver();
    const which = await endpointIn(ledger, receiver.url);
    await postTest(database, which, {});
    const stop = new AbortController();
    const type = 'webhook_endpoint.test';
    const { sending, end, hasHeld } = sendingBut(type, which.id, receiver, stop.signal);
    await until(hasHeld);
    stop.abort();
    await database.transaction((tx) => postEvent(tx, which.accountId, 'key.revoked', {}));
    await end();
    assert.equal((await sending).nextInMs, 0);
    const left = await listDeliveries(database, which.id, 'waiting', { limit: 50 });
    assert.deepEqual(
      left.map(({ attempts }) => attempts),
      [0],
    );
  });

  it('gets no event twice because the first answer could not be recorded', async () => {
    const { database, url } = ledger;
    receiver = await startReceiver();
    const which = await endpointIn(ledger, receiver.url);
    await postTest(database, which, {});
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(`
      create function public.refuse() returns trigger language plpgsql as $$
      begin
        raise exception 'not recorded';
      end $$;
      create trigger zz_refuse before update on farebox.webhook_deliveries
        for each row execute function public.refuse()
    `);
    await assert.rejects(sendIn(ledger, which.id), /not recorded/);
    assert.equal(receiver.events.length, 1);
    await client.query('drop function public.refuse cascade');
    await client.end();
  });

  /** Sends what is due to a receiver that does not answer events of this type until the `end`. */
  function sendingBut(type: string, id: string, to: Receiver, stopping?: AbortSignal) {
    const held: ServerResponse[] = [];
    to.respondWith((response, event) => {
      if (event.payload.type === type) held.push(response);
      else response.writeHead(200).end();
    });
    const sending = sendIn(ledger, id, OLD, stopping);
    const attempts = async (status: DeliveryStatus) =>
      (await listDeliveries(ledger.database, id, status, { limit: 50 })).map(
        (delivery) => delivery.attempts,
      );
    return {
      sending,
      attempts,
      hasHeld: () => held.length > 0,
      isDelivered: async (count: number) => (await attempts('delivered')).length === count,
      end: async () => {
        to.respondWith();
        for (const response of held) response.writeHead(200).end();
        await sending;
      },
    };
  }
});
