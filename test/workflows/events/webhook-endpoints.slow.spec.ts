/**
 * Events reach an account's endpoints: each of them, signed, as soon as its change is committed, and despite
 * outages.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import type { Static } from 'typebox';
import { readTemporalConfig } from '../../../src/config.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import { workflowIdIn } from '../../../src/domain/task-queues.ts';
import { EVENT_DATA } from '../../../src/schemas/events.ts';
import { ToolReply } from '../../../src/schemas/tools.ts';
import {
  DeliveriesReply,
  DeliveryReply,
  NewWebhookEndpointReply,
  RolledSecretReply,
  WebhookEndpointReply,
} from '../../../src/schemas/webhook-endpoints.ts';
import { createTemporalClient, type TemporalClient } from '../../../src/temporal/client.ts';
import { HISTORY_EVENTS_MAX } from '../../../workflows/webhook-endpoint.ts';
import { createTestAccount, type TestAccount } from '../../support/accounts.ts';
import { proveBooks } from '../../support/books.ts';
import { endAll } from '../../support/end-all.ts';
import { assertError, assertShape, bodyOf, call } from '../../support/http.ts';
import { startReceiver, verify, type Receiver } from '../../support/receiver.ts';
import { startStack, until, type Stack } from '../../support/stack.ts';

type Endpoint = Static<typeof NewWebhookEndpointReply>;

const prices = (at: Receiver) =>
  at.received('tool.price_changed').map(({ payload }) => payload.data['price']);

describe('webhook endpoints', () => {
  let stack: Stack;
  let sql: Client;
  let temporal: TemporalClient;
  let account: TestAccount;
  let tool: string;
  let price = 1;
  const receivers: Receiver[] = [];

  before(async () => {
    stack = await startStack({
      env: { ALLOW_PRIVATE_ENDPOINTS: 'true', WEBHOOK_RETRY_MS: '100', DEV_MAIL: 'true' },
    });
    sql = new Client({ connectionString: stack.database.url });
    await sql.connect();
    temporal = createTemporalClient(readTemporalConfig(stack.env));
  });
  beforeEach(async () => {
    account = await createTestAccount(stack.database.url, 0);
    tool = await register(account);
  });
  after(() =>
    endAll(
      () => proveBooks(stack.env, { processor: false, only: ['schema', 'delivery', 'audit-log'] }),
      () => Promise.all(receivers.map((receiver) => receiver.stop())),
      () => temporal?.close(),
      () => sql?.end(),
      () => stack?.stop(),
    ),
  );

  const ask = (method: string, path: string, body?: object, { developerKey: key } = account) =>
    call(stack.api, method, path, { key, body });

  async function register(owner: TestAccount): Promise<string> {
    const body = { name: `tool ${randomUUID()}`, price: 1 };
    return bodyOf(await ask('POST', '/v1/tools', body, owner), 201, ToolReply).id;
  }

  async function receiver(): Promise<Receiver> {
    const started = await startReceiver();
    receivers.push(started);
    return started;
  }

  async function endpoint({ url }: Receiver, more: object = {}): Promise<Endpoint> {
    const body = { url, ...more };
    return bodyOf(await ask('POST', '/v1/webhook-endpoints', body), 201, NewWebhookEndpointReply);
  }

  /** Commits a change that has an event, and returns the price that the event has. */
  async function change(id = tool, owner = account): Promise<number> {
    price += 1;
    assert.equal((await ask('PATCH', `/v1/tools/${id}`, { price }, owner)).status, 200);
    return price;
  }

  const workflowOf = ({ id }: Endpoint) =>
    temporal.client.workflow.getHandle(workflowIdIn(temporal, 'webhooks', id));
  const shown = async ({ id }: Endpoint) =>
    bodyOf(await ask('GET', `/v1/webhook-endpoints/${id}`), 200, WebhookEndpointReply);
  const log = async ({ id }: Endpoint, query = '') =>
    bodyOf(await ask('GET', `/v1/webhook-endpoints/${id}/deliveries${query}`), 200, DeliveriesReply)
      .deliveries;
  const test = async ({ id }: Endpoint) =>
    bodyOf(await ask('POST', `/v1/webhook-endpoints/${id}/test`), 201, DeliveryReply);

  it('get an event soon after its commit, signed and in the documented form', async () => {
    const at = await receiver();
    const { secret } = await endpoint(at);
    // A tenth of a second on a quiet machine; without its notice it would wait for the sweep of each minute.
    const { asked, changed } = await until(async () => {
      const price = await change();
      const event = await until(() =>
        at.received('tool.price_changed').find(({ payload }) => payload.data['price'] === price),
      );
      const isSoon = event.atMs - Date.parse(event.payload.timestamp) < 30_000;
      return isSoon && { asked: price, changed: event };
    });
    const { type, timestamp: _, data, ...rest } = changed.payload;
    assert.deepEqual(rest, {});
    assert.equal(type, 'tool.price_changed');
    assertShape(data, EVENT_DATA['tool.price_changed']);
    assert.equal(data['price'], asked);
    assert.match(changed.id, /^evt_[0-9a-f]{32}$/);
    assert.deepEqual(verify(secret, changed), changed.payload);
    assert.throws(
      () => verify(`whsec_${btoa('another secret')}`, changed),
      /No matching signature/,
    );
  });

  it('get only the types that they ask for, and only those of their account', async () => {
    const [all, some] = [await receiver(), await receiver()];
    await endpoint(all);
    const filtered = await endpoint(some, { types: ['key.created'] });
    const other = await createTestAccount(stack.database.url, 0);
    await change(await register(other), other);
    const first = await change();
    await until(() => prices(all).length === 1);
    assert.deepEqual(prices(all), [first]);
    await ask('PATCH', `/v1/webhook-endpoints/${filtered.id}`, { types: ['tool.price_changed'] });
    const second = await change();
    await until(() => prices(some).length === 1 && prices(all).length === 2);
    assert.deepEqual(prices(some), [second]);
    assert.deepEqual(new Set(prices(all)), new Set([first, second]));
  });

  it('miss nothing while they are down, and get each event once they are back', async () => {
    const at = await receiver();
    const made = await endpoint(at);
    at.respondWith((response) => void response.writeHead(503).end('down for a while'));
    const asked = [await change(), await change(), await change()];
    const failed = await until(async () => {
      const deliveries = await log(made, '?status=waiting');
      return (
        deliveries.length === 3 && deliveries.every(({ attempts }) => attempts >= 2) && deliveries
      );
    });
    assert.equal(failed[0]?.responseStatus, 503);
    assert.equal(failed[0]?.responseBody, 'down for a while');
    assert.ok(
      Date.parse(failed[0]?.nextAttemptAt ?? '') > Date.parse(failed[0]?.attemptedAt ?? ''),
    );
    assert.ok((await shown(made)).failingSince);

    const accepted: string[] = [];
    at.respondWith((response, { id }) => {
      accepted.push(id);
      response.writeHead(204).end();
    });
    // Nothing waits for its own next attempt once one has arrived.
    asked.push(await change());
    await until(() => accepted.length === 4);
    assert.equal(new Set(accepted).size, 4);
    assert.deepEqual(new Set(prices(at)), new Set(asked));
    for (const [, attempts] of Map.groupBy(at.events, ({ id }) => id)) {
      assert.equal(new Set(attempts.map(({ raw }) => raw)).size, 1);
    }
    const deliveries = await until(async () => {
      const found = await log(made, '?status=delivered');
      return found.length === 4 && found;
    });
    assert.equal(deliveries[0]?.responseStatus, 204);
    assert.equal((await shown(made)).failingSince, null);
  });

  it('do not get a refused event sooner each time they accept another one', async () => {
    const at = await receiver();
    const made = await endpoint(at);
    at.respondWith(
      (response, { payload: { type } }) =>
        void response.writeHead(type === 'webhook_endpoint.test' ? 400 : 204).end(),
    );
    await test(made);
    await until(() => at.events.length === 1);
    for (let accepted = 1; accepted <= 30; accepted += 1) {
      await change();
      await until(() => prices(at).length === accepted);
    }
    const refused = at.received('webhook_endpoint.test').length;
    assert.ok(refused < 10, `it was sent ${refused} times`);
  });

  it('sign with both secrets after a roll, until the overlap is over', async () => {
    const at = await receiver();
    const made = await endpoint(at);
    const roll = async (body: object) =>
      bodyOf(
        await ask('POST', `/v1/webhook-endpoints/${made.id}/roll-secret`, body),
        200,
        RolledSecretReply,
      );
    const rolled = await roll({});
    assert.ok(rolled.previousSecretExpiresAt);
    await test(made);
    const both = await until(() => at.events[0]);
    for (const secret of [made.secret, rolled.secret]) verify(secret, both);

    const again = await roll({ overlapSeconds: 0 });
    assert.equal((await shown(made)).previousSecretExpiresAt, null);
    await test(made);
    const one = await until(() => at.events[1]);
    verify(again.secret, one);
    for (const secret of [made.secret, rolled.secret]) assert.throws(() => verify(secret, one));
    assert.equal(new Set([made.secret, rolled.secret, again.secret]).size, 3);
  });

  it('get a test, whichever types they want, and an event again on demand', async () => {
    const at = await receiver();
    const made = await endpoint(at, { types: ['key.created'] });
    const { eventId } = await test(made);
    const first = await until(() => at.events[0]);
    assert.equal(first.id, eventId);
    assert.deepEqual(first.payload.data, { id: made.id });
    await until(async () => (await log(made))[0]?.status === 'delivered');
    const path = `/v1/webhook-endpoints/${made.id}/deliveries/${eventId}/redeliver`;
    bodyOf(await ask('POST', path), 200, DeliveryReply);
    const second = await until(() => at.events[1]);
    assert.equal(second.id, first.id);
    assert.equal(second.raw, first.raw);
    await until(async () => (await log(made))[0]?.attempts === 2);
  });

  it('are disabled when they answer 410, with an event to the others, and can be enabled', async () => {
    const [gone, other] = [await receiver(), await receiver()];
    const made = await endpoint(gone);
    await endpoint(other);
    gone.respondWith((response) => void response.writeHead(410).end());
    await change();
    const told = await until(() => other.received('webhook_endpoint.disabled')[0]);
    assert.deepEqual(told.payload.data, { id: made.id, reason: 'gone' });
    assertShape(told.payload.data, EVENT_DATA['webhook_endpoint.disabled']);
    const { status, disabledReason } = await shown(made);
    assert.deepEqual([status, disabledReason], ['disabled', 'gone']);
    const handle = workflowOf(made);
    assert.deepEqual((await handle.result()).status, 'disabled');
    assertError(
      await ask('POST', `/v1/webhook-endpoints/${made.id}/test`),
      409,
      'webhook_endpoint_disabled',
    );
    gone.respondWith();
    const before = gone.events.length;
    await change();
    await ask('PATCH', `/v1/webhook-endpoints/${made.id}`, { enabled: true });
    const asked = await change();
    await until(() => prices(gone).at(-1) === asked);
    // Not what happened while it was disabled.
    assert.equal(gone.events.length, before + 1);
  });

  it('stay active when their earlier address answers 410 after they got another one', async () => {
    const [earlier, later] = [await receiver(), await receiver()];
    const made = await endpoint(earlier);
    const held = Promise.withResolvers<void>();
    earlier.respondWith((response) => void held.promise.then(() => response.writeHead(410).end()));
    await change();
    await until(() => earlier.events.length === 1);
    await ask('PATCH', `/v1/webhook-endpoints/${made.id}`, { url: later.url });
    held.resolve();
    await until(async () => ((await log(made))[0]?.attempts ?? 0) >= 1);
    const asked = await change();
    await until(() => prices(later).includes(asked));
    await until(() => prices(later).length === 2);
    assert.equal((await shown(made)).status, 'active');
  });

  it('are disabled after failing for days, with a mail to the owner', async () => {
    const at = await receiver();
    const made = await endpoint(at);
    at.respondWith((response) => void response.writeHead(500).end());
    await change();
    await until(async () => (await shown(made)).failingSince);
    await sql.query(
      `update farebox.webhook_endpoints set created_at = now() - interval '122 hours', failing_since = now() - interval '121 hours' where id = $1`,
      [uuidOf('webhookEndpoint', made.id)],
    );
    await until(async () => (await shown(made)).status === 'disabled');
    assert.equal((await shown(made)).disabledReason, 'failing');
    assert.deepEqual(
      (await log(made)).map(({ status }) => status),
      ['failed'],
    );
    const { rows } = await until(async () => {
      const found = await sql.query<{ body: string }>(
        'select body from console.mails where recipient = $1',
        [account.email],
      );
      return found.rows.length > 0 && found;
    });
    assert.match(rows[0]?.body ?? '', new RegExp(made.id));
  });

  it('give an event up after failing for days, and stay active', async () => {
    const at = await receiver();
    const made = await endpoint(at);
    at.respondWith((response) => void response.writeHead(500).end());
    await change();
    await until(async () => (await log(made))[0]?.attempts);
    const [delivery] = await log(made);
    await sql.query(
      `update farebox.events set created_at = now() - interval '121 hours' where id = $1`,
      [uuidOf('event', delivery?.eventId ?? '')],
    );
    const failed = await until(async () => (await log(made, '?status=failed'))[0]);
    assert.equal(failed.nextAttemptAt, null);
    assert.equal((await shown(made)).status, 'active');
  });

  it('get each event once, although their workflow continues as a new run', async () => {
    const at = await receiver();
    const made = await endpoint(at);
    const asked = [await change()];
    await until(() => prices(at).length === 1);
    const handle = workflowOf(made);
    const { runId: first } = await handle.describe();
    for (let signals = 0; signals < HISTORY_EVENTS_MAX; signals += 1)
      await handle.signal('changed');
    await until(async () => (await handle.describe()).runId !== first);
    asked.push(await change());
    await until(() => prices(at).length === 2);
    assert.deepEqual(prices(at), asked);
    // The second run may have got so many of the signals that a third one follows.
    await until(async () => (await handle.describe()).historyLength < HISTORY_EVENTS_MAX);
  });

  it('are told nothing after they are deleted, and their workflow ends', async () => {
    const at = await receiver();
    const made = await endpoint(at);
    await test(made);
    await until(() => at.events.length === 1);
    assert.equal((await ask('DELETE', `/v1/webhook-endpoints/${made.id}`)).status, 200);
    const handle = workflowOf(made);
    assert.deepEqual(await handle.result(), { status: null, failingSince: null });
    await change();
    const { rows } = await sql.query(
      'select from farebox.webhook_deliveries where endpoint_id = $1',
      [uuidOf('webhookEndpoint', made.id)],
    );
    assert.equal(rows.length, 0);
    assert.equal(at.events.length, 1);
  });

  it('get what was posted while their workflow was terminated', async () => {
    const at = await receiver();
    const made = await endpoint(at);
    await test(made);
    await until(() => at.events.length === 1);
    await workflowOf(made).terminate();
    const asked = await change();
    await until(() => prices(at).length === 1);
    assert.deepEqual(prices(at), [asked]);
  });
});
