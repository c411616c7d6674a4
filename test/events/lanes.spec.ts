/** An endpoint that leaves some events without an answer gets the others in time. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import type { DeliveryStatus } from '../../src/domain/webhook-delivery.ts';
import { listDeliveries, postTest } from '../../src/store/events/deliveries.ts';
import { postEvent } from '../../src/store/events/events.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { startReceiver, type Receiver } from '../support/receiver.ts';
import { until } from '../support/stack.ts';
import { endpointIn, refuseIn, sendIn } from './sending.ts';

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

  /** Sends what is due to a receiver that does not answer events of this type until the `end`. */
  function sendingBut(type: string, id: string, to: Receiver) {
    const held: ServerResponse[] = [];
    to.respondWith((response, event) => {
      if (event.payload.type === type) held.push(response);
      else response.writeHead(200).end();
    });
    const sending = sendIn(ledger, id);
    const attempts = async (status: DeliveryStatus) =>
      (await listDeliveries(ledger.database, id, status, { limit: 50 })).map(
        (delivery) => delivery.attempts,
      );
    return {
      attempts,
      isDelivered: async (count: number) => (await attempts('delivered')).length === count,
      end: async () => {
        to.respondWith();
        for (const response of held) response.writeHead(200).end();
        await sending;
      },
    };
  }
});
