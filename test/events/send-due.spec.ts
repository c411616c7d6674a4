/**
 * When an endpoint counts as failing, when there is more to send to it, and how events for one that has ended
 * are dropped.
 */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { Type } from 'typebox';
import { wireId } from '../../src/domain/ids.ts';
import { rollSecret } from '../../src/events/webhook-endpoints.ts';
import { readBacklog } from '../../src/store/operators/backlog.ts';
import { row, sql } from '../../src/store/database.ts';
import {
  listDeliveries,
  listDueDeliveries,
  nextDeliveryInMs,
  postTest,
  redeliver,
} from '../../src/store/events/deliveries.ts';
import { postEvent } from '../../src/store/events/events.ts';
import {
  changeWebhookEndpoint,
  deleteWebhookEndpoint,
  disableWebhookEndpoint,
  findWebhookEndpoint,
  type WhichEndpoint,
} from '../../src/store/events/webhook-endpoints.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { startReceiver, verify, type Receiver } from '../support/receiver.ts';
import { holdEndpoint } from '../support/row-locks.ts';
import { until } from '../support/stack.ts';
import { endpointIn, NEW, OLD, refuseIn, sendIn, signerWith } from './sending.ts';

const hastenedRow = row(Type.Object({ isHastened: Type.Boolean() }));
describe('an endpoint', () => {
  let ledger: TestLedger;
  let receiver: Receiver | undefined;

  before(async () => {
    ledger = await openTestLedger();
  });
  afterEach(() => receiver?.stop());
  after(() => ledger?.drop());

  /** Changes the address of an endpoint while an attempt there has no answer. Then `answer` ends the attempt. */
  async function attemptAtFormerAddress() {
    receiver = await startReceiver();
    const held = Promise.withResolvers<ServerResponse>();
    receiver.respondWith((response) => held.resolve(response));
    const which = await endpointIn(ledger, receiver.url);
    await postTest(ledger.database, which, {});
    const sent = sendIn(ledger, which.id);
    const response = await held.promise;
    const same = { types: undefined, description: undefined, isEnabled: undefined };
    const url = 'https://example.com/other';
    await changeWebhookEndpoint(ledger.database, which, { ...same, url });
    // Something waits, but is not sent to the new address meanwhile.
    await pausedEventIn(ledger, which);
    const answer = async (status: number) => {
      response.writeHead(status).end();
      await sent;
    };
    return { ...which, answer };
  }

  it('does not count as failing from then on when it refuses an old event that was sent again', async () => {
    const { database } = ledger;
    const { id, accountId } = await endpointIn(ledger);
    const failing = async (days: number) => {
      const event = await postTest(database, { id, accountId }, {});
      await database.query(sql.typeAlias('nothing')`
        update farebox.events set created_at = now() - make_interval(days => ${days}) where id = ${event.id}
      `);
      await refuseIn(ledger, id, event.id, 1);
      const endpoint = await findWebhookEndpoint(database, { id });
      assert.equal(endpoint?.status, 'active');
      return endpoint.failingSince;
    };
    assert.equal(await failing(6), null);
    assert.notEqual(await failing(0), null);
  });

  it('is failing until it gives up the last event that waits, and a later failure is a new one', async () => {
    const { database } = ledger;
    const which = await endpointIn(ledger);
    const { id } = which;
    const refused = await postTest(database, which, {});
    const other = await postTest(database, which, {});
    await refuseIn(ledger, id, refused.id, 1);
    await refuseIn(ledger, id, other.id, 1);
    await database.query(sql.typeAlias('nothing')`
      update farebox.events set created_at = now() - interval '6 days' where id in (${refused.id}, ${other.id})
    `);
    const sinceDays = async (days: number) =>
      database.query(sql.typeAlias('nothing')`
        update farebox.webhook_endpoints set failing_since = failing_since - make_interval(days => ${days})
        where id = ${id}
      `);
    await sinceDays(4);
    const before = await failingSinceOf(ledger, id);
    assert.equal(await refuseIn(ledger, id, refused.id, 1), false);
    assert.equal(await failingSinceOf(ledger, id), before);
    assert.equal(await refuseIn(ledger, id, other.id, 1), false);
    assert.equal(await failingSinceOf(ledger, id), null);
    assert.deepEqual(await statusesOf(ledger, id), {
      [refused.id]: 'failed',
      [other.id]: 'failed',
    });
    // If the failure had lasted, it would be older than five days by now.
    await sinceDays(4);
    const later = await postTest(database, which, {});
    assert.equal(await refuseIn(ledger, id, later.id, 1), false);
    assert.notEqual(await failingSinceOf(ledger, id), null);
  });

  it('is not failing at another address before an attempt there has failed, and gets there all that wait', async () => {
    const { database } = ledger;
    receiver = await startReceiver();
    const which = await endpointIn(ledger);
    const refused = await postTest(database, which, {});
    await refuseIn(ledger, which.id, refused.id, 3_600_000);
    const same = { url: undefined, types: undefined, description: undefined, isEnabled: undefined };
    await changeWebhookEndpoint(database, which, { ...same, description: 'other' });
    assert.notEqual(await failingSinceOf(ledger, which.id), null);
    await changeWebhookEndpoint(database, which, { ...same, url: receiver.url });
    assert.equal(await failingSinceOf(ledger, which.id), null);
    const next = await postTest(database, which, {});
    await sendIn(ledger, which.id);
    const sent = { [refused.id]: 'delivered', [next.id]: 'delivered' };
    assert.deepEqual(await statusesOf(ledger, which.id), sent);
  });

  it('is not failing because an attempt at its former address fails after the change', async () => {
    const { id, answer } = await attemptAtFormerAddress();
    await answer(500);
    assert.equal(await failingSinceOf(ledger, id), null);
  });

  it('is failing still though an attempt at its former address succeeds', async () => {
    const { id, answer } = await attemptAtFormerAddress();
    await ledger.database.query(sql.typeAlias('nothing')`
      update farebox.webhook_endpoints set failing_since = now() where id = ${id}
    `);
    await answer(200);
    assert.notEqual(await failingSinceOf(ledger, id), null);
  });

  it('gets nothing earlier because an attempt at its former address succeeds', async () => {
    const { answer, ...which } = await attemptAtFormerAddress();
    const paused = await pausedEventIn(ledger, which);
    await answer(200);
    const isHastened = await ledger.database.oneFirst(sql.type(hastenedRow)`
      select is_hastened as "isHastened" from farebox.webhook_deliveries where event_id = ${paused.id}
    `);
    assert.equal(isHastened, false);
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

  it('is left alone while nothing waits for it', async () => {
    const { id, accountId } = await endpointIn(ledger);
    assert.equal((await sendIn(ledger, id)).nextInMs, null);
    const { id: eventId } = await postTest(ledger.database, { id, accountId }, {});
    assert.equal(await nextDeliveryInMs(ledger.database, id), 0);
    await ledger.database.query(sql.typeAlias('nothing')`
      update farebox.webhook_deliveries set status = 'delivered', next_attempt_at = null where event_id = ${eventId}
    `);
    assert.equal(await nextDeliveryInMs(ledger.database, id), null);
  });

  it('whose master secret is missing keeps its events until the secret is back, and is not failing', async () => {
    const { database } = ledger;
    const { endpoint, events, stop } = await receivingEndpoint();
    const { id, accountId } = endpoint;
    try {
      assert.equal((await sendIn(ledger, id, `2:${NEW}`)).nextInMs, null);
      await postTest(database, { id, accountId }, {});
      const waits = { status: 'active', failingSince: null, nextInMs: 60_000 };
      assert.deepEqual(await sendIn(ledger, id, `2:${NEW}`), waits);
      assert.deepEqual(await attemptsOf(ledger, id), [['waiting', 0]]);
      assert.equal((await sendIn(ledger, id, `2:${NEW},1-retired:${OLD}`)).nextInMs, null);
      assert.deepEqual(await attemptsOf(ledger, id), [['delivered', 1]]);
      assert.equal(events.length, 1);
    } finally {
      await stop();
    }
  });

  it('whose secret was rolled away from a missing master secret gets its events at once', async () => {
    const { database } = ledger;
    const { endpoint, events, stop } = await receivingEndpoint();
    const { id, accountId } = endpoint;
    try {
      const signer = signerWith(`2:${NEW}`);
      const rolled = await rollSecret(database, { id, accountId }, 3_600, signer);
      assert.ok(rolled.kind === 'done');
      assert.notEqual(rolled.endpoint.previousSecretUntil, null);
      await postTest(database, { id, accountId }, {});
      assert.equal((await sendIn(ledger, id, `2:${NEW}`)).nextInMs, null);
      assert.deepEqual(await attemptsOf(ledger, id), [['delivered', 1]]);
      const [event] = events;
      assert.ok(event);
      verify(rolled.secret, event);
    } finally {
      await stop();
    }
  });

  /** Its secret is derived from the master secret with the number 1. */
  async function receivingEndpoint() {
    const { url, events, stop } = await startReceiver();
    return { endpoint: await endpointIn(ledger, url), events, stop };
  }

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
    const sending = sendIn(ledger, id);
    await held.waited(2);
    await held.release();
    assert.equal((await sending).status, 'active');
  });

  it('that accepts an event gets all that wait, although another one that it refused is recorded later', async () => {
    const { database } = ledger;
    receiver = await startReceiver();
    const which = await endpointIn(ledger, receiver.url);
    const { id } = which;
    const paused = await pausedEventIn(ledger, which);
    const accepted = await postTest(database, which, {});
    const refused = await postTest(database, which, {});
    await database.query(sql.typeAlias('nothing')`
      update farebox.webhook_endpoints set failing_since = now() where id = ${id}
    `);
    receiver.respondWith((response, event) => {
      if (event.id !== wireId('event', refused.id)) response.writeHead(200).end();
      else void until(() => isDelivered(accepted)).then(() => response.writeHead(500).end());
    });
    const isDelivered = async (event: { id: string }) =>
      (await statusesOf(ledger, id))[event.id] === 'delivered';
    await sendIn(ledger, id);
    assert.deepEqual(await statusesOf(ledger, id), {
      [paused.id]: 'delivered',
      [accepted.id]: 'delivered',
      [refused.id]: 'waiting',
    });
  });

  it('gets all that wait with the next event that it accepts, after a worker was killed before it sent them', async () => {
    const { database } = ledger;
    receiver = await startReceiver();
    const which = await endpointIn(ledger, receiver.url);
    const paused = await pausedEventIn(ledger, which);
    // The killed worker has recorded an event that was accepted, so nothing says that the endpoint failed.
    const next = await postTest(database, which, {});
    await sendIn(ledger, which.id);
    assert.deepEqual(await statusesOf(ledger, which.id), {
      [paused.id]: 'delivered',
      [next.id]: 'delivered',
    });
  });

  for (const [age, days] of [
    ['a new', 0],
    ['an old', 6],
  ] as const) {
    it(`gets ${age} event again at once when that was asked while it refused the event`, async () => {
      const { database } = ledger;
      receiver = await startReceiver();
      const which = await endpointIn(ledger, receiver.url);
      const event = await postTest(database, which, {});
      await database.query(sql.typeAlias('nothing')`
        update farebox.events set created_at = now() - make_interval(days => ${days}) where id = ${event.id}
      `);
      receiver.respondWith((response) => {
        receiver?.respondWith();
        void redeliver(database, which.id, event.id).then(() => response.writeHead(500).end());
      });
      assert.equal((await sendIn(ledger, which.id)).nextInMs, null);
      assert.deepEqual(await attemptsOf(ledger, which.id), [['delivered', 2]]);
    });
  }

  for (const [status, recorded] of [
    [204, 'delivered'],
    [500, 'failed'],
  ] as const) {
    it(`that is disabled while it responds with ${status} to an event has ${recorded} in its log`, async () => {
      const { database } = ledger;
      receiver = await startReceiver();
      const which = await endpointIn(ledger, receiver.url);
      const sent = await postTest(database, which, {});
      const paused = await pausedEventIn(ledger, which);
      receiver.respondWith(
        (response) =>
          void database
            .transaction((tx) => disableWebhookEndpoint(tx, which.id, 'owner'))
            .then(() => response.writeHead(status).end()),
      );
      assert.equal((await sendIn(ledger, which.id)).status, 'disabled');
      const log = { [sent.id]: recorded, [paused.id]: 'failed' };
      assert.deepEqual(await statusesOf(ledger, which.id), log);
    });
  }
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
    const wanted = { limit: 10, retriesMax: 10, except: [] };
    assert.deepEqual(await listDueDeliveries(database, endpoint.id, wanted), []);
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
    await sendIn(ledger, endpoint.id);
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

async function attemptsOf({ database }: TestLedger, id: string) {
  const page = { limit: 10, beforeId: undefined };
  const deliveries = await listDeliveries(database, id, undefined, page);
  return deliveries.map(({ status, attempts }) => [status, attempts]);
}

async function failingSinceOf({ database }: TestLedger, id: string) {
  return (await findWebhookEndpoint(database, { id }))?.failingSince;
}

async function statusesOf({ database }: TestLedger, id: string) {
  const deliveries = await listDeliveries(database, id, undefined, { limit: 10 });
  return Object.fromEntries(deliveries.map(({ id: eventId, status }) => [eventId, status]));
}

/** An event that was refused, and whose next attempt is due in an hour. */
async function pausedEventIn(ledger: TestLedger, which: WhichEndpoint) {
  const { database } = ledger;
  const event = await postTest(database, which, {});
  await refuseIn(ledger, which.id, event.id, 3_600_000);
  await database.query(sql.typeAlias('nothing')`
    update farebox.webhook_endpoints set failing_since = null where id = ${which.id}
  `);
  return event;
}
