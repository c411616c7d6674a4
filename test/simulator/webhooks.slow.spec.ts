/** Signed webhooks: delivered, retried, and still pending after kill -9. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Stripe } from 'stripe';
import { SimulatorProcess, until, WebhookReceiver } from './simulator-process.ts';

interface WebhookState {
  readonly owed: readonly { readonly type: string; readonly attempts: number }[];
}

/** Each creates one event. */
function createCustomer(simulator: SimulatorProcess): Promise<Stripe.Customer> {
  return simulator.stripe.customers.create();
}

async function createSession(simulator: SimulatorProcess): Promise<Stripe.Checkout.Session> {
  const price_data = { currency: 'usd', unit_amount: 700, product_data: { name: 'Balance' } };
  return simulator.stripe.checkout.sessions.create({
    mode: 'payment',
    line_items: [{ quantity: 1, price_data }],
    success_url: 'http://127.0.0.1:9/done',
  });
}

function pay(url: string, card = '4242424242424242'): Promise<Response> {
  return fetch(url, { method: 'POST', body: new URLSearchParams({ card }) });
}

describe("the simulator's webhooks", () => {
  let receiver: WebhookReceiver;
  let simulator: SimulatorProcess;

  before(async () => {
    receiver = await WebhookReceiver.listen();
    simulator = await SimulatorProcess.start(receiver.url);
  });
  beforeEach(async () => {
    receiver.status = 200;
    // Removes what an earlier test left.
    await simulator.control('POST', 'webhooks', { mode: 'drop', duplicate: 1, shuffle: false });
    await untilNothingIsOwed();
    receiver.forget();
    await simulator.control('POST', 'webhooks', { mode: 'deliver' });
  });
  after(async () => {
    await simulator?.remove();
    receiver?.close();
  });

  async function owed(): Promise<WebhookState['owed']> {
    return (await simulator.control<WebhookState>('GET', 'webhooks')).owed;
  }

  /** Each event once: the simulator sends it again when a busy machine accepts it late. */
  const distinct = () => [...new Map(receiver.events.map((event) => [event.id, event])).values()];

  async function untilNothingIsOwed(): Promise<void> {
    while ((await owed()).length > 0);
  }

  it('are sent again after a failure, until they are accepted', async () => {
    receiver.status = 500;
    const { id } = await createCustomer(simulator);
    await until(() => receiver.refusals >= 2);
    receiver.status = 200;
    await receiver.event('customer.created', id);
    await untilNothingIsOwed();
    assert.equal(distinct().length, 1);
  });

  it('count a redirect as a failure', async () => {
    receiver.status = 302;
    await createCustomer(simulator);
    await until(() => receiver.refusals >= 2);
    assert.equal((await owed()).length, 1);
  });

  it('are held and then released', async () => {
    await simulator.control('POST', 'webhooks', { mode: 'hold', shuffle: true });
    const customers = [];
    for (let index = 0; index < 20; index += 1) customers.push(await createCustomer(simulator));
    assert.equal((await owed()).length, 20);
    assert.equal(receiver.events.length, 0);
    await simulator.control('POST', 'webhooks', { mode: 'deliver' });
    await untilNothingIsOwed();
    const ids = distinct().map(({ data }) => (data.object as Stripe.Customer).id);
    assert.deepEqual(ids.toSorted(), customers.map(({ id }) => id).toSorted());
  });

  it('are sent one at a time and in any order, when a test asks for it', async () => {
    await simulator.control('POST', 'webhooks', { mode: 'hold' });
    for (let index = 0; index < 3; index += 1) await createCustomer(simulator);
    const { data } = await simulator.stripe.events.list({ limit: 3 });
    for (const { id } of data) await simulator.control('POST', `events/${id}/deliver`);
    assert.deepEqual(
      receiver.events.map(({ id }) => id),
      data.map(({ id }) => id),
    );
  });

  it('are lost forever', async () => {
    await simulator.control('POST', 'webhooks', { mode: 'drop' });
    await createCustomer(simulator);
    await simulator.control('POST', 'webhooks', { mode: 'deliver' });
    const { id } = await createCustomer(simulator);
    await receiver.event('customer.created', id);
    await untilNothingIsOwed();
    assert.equal(distinct().length, 1);
  });

  it('are duplicated', async () => {
    await simulator.control('POST', 'webhooks', { duplicate: 3 });
    await createCustomer(simulator);
    await until(() => receiver.events.length >= 3);
    assert.equal(new Set(receiver.events.map(({ id }) => id)).size, 1);
  });

  it('survive kill -9 with the payment, and are sent as soon as it starts again', async () => {
    receiver.status = 503;
    const session = await createSession(simulator);
    const url = String(session.url);
    assert.equal((await pay(url)).status, 200);
    await simulator.end('SIGKILL');
    receiver.status = 200;
    simulator = await SimulatorProcess.start(receiver.url, simulator);
    await receiver.event('checkout.session.completed', session.id);
    const again = await simulator.stripe.checkout.sessions.retrieve(session.id);
    assert.equal(again.payment_status, 'paid');
  });

  it('are given up after three days', async () => {
    receiver.status = 503;
    await createCustomer(simulator);
    await until(() => receiver.refusals >= 1);
    await simulator.end('SIGKILL');
    const database = new DatabaseSync(join(simulator.directory, 'simulator.sqlite'));
    database.exec(`update owed_webhooks set first_at_ms = first_at_ms - ${3 * 86_400_000}`);
    database.close();
    receiver.forget();
    simulator = await SimulatorProcess.start(receiver.url, simulator);
    await untilNothingIsOwed();
    assert.deepEqual(receiver.events, []);
  });

  it('leave a page that can still be paid after kill -9', async () => {
    const session = await createSession(simulator);
    await simulator.end('SIGKILL');
    simulator = await SimulatorProcess.start(receiver.url, simulator);
    assert.equal((await pay(String(session.url))).status, 200);
    await receiver.event('checkout.session.completed', session.id);
  });
});

describe("the simulator's process", () => {
  const nowhere = 'http://127.0.0.1:9/webhooks/stripe';
  let simulator: SimulatorProcess;

  afterEach(() => simulator.remove());

  it('settles a bank debit by itself, as the account number determines', async () => {
    const receiver = await WebhookReceiver.listen();
    simulator = await SimulatorProcess.start(receiver.url, undefined, { settleSeconds: 1 });
    const good = await createSession(simulator);
    const bad = await createSession(simulator);
    await pay(String(good.url), '000123456789');
    await pay(String(bad.url), '000111111113');
    await receiver.event('checkout.session.async_payment_succeeded', good.id);
    await receiver.event('checkout.session.async_payment_failed', bad.id);
    receiver.close();
  });

  it('sends at most 16 webhooks at once', async () => {
    const waiting = new Set<ServerResponse>();
    const slow = createServer((_, response) => {
      waiting.add(response);
      response.on('close', () => waiting.delete(response));
    });
    slow.listen(0, '127.0.0.1');
    await once(slow, 'listening');
    const { port } = slow.address() as AddressInfo;
    simulator = await SimulatorProcess.start(`http://127.0.0.1:${port}/`);
    await simulator.control('POST', 'webhooks', { mode: 'hold' });
    for (let index = 0; index < 20; index += 1) await createCustomer(simulator);
    await simulator.control('POST', 'webhooks', { mode: 'deliver' });
    await until(() => waiting.size >= 16);
    // Further ones would have been sent before these answers.
    for (let n = 0; n < 10; n += 1) await simulator.control('GET', 'webhooks');
    assert.ok(waiting.size <= 16, `${waiting.size} at once`);
    slow.close();
    slow.closeAllConnections();
  });

  it('keeps an idempotency key through kill -9', async () => {
    const options = { idempotencyKey: 'key-1' };
    simulator = await SimulatorProcess.start(nowhere);
    const { id } = await simulator.stripe.customers.create({ name: 'Ada' }, options);
    await simulator.end('SIGKILL');
    simulator = await SimulatorProcess.start(nowhere, simulator);
    assert.equal((await simulator.stripe.customers.create({ name: 'Ada' }, options)).id, id);
  });

  it('exits cleanly when told to, also during a webhook', async () => {
    const silent = createServer(() => {});
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    simulator = await SimulatorProcess.start(`http://127.0.0.1:${port}/`);
    const asked = once(silent, 'request');
    await createCustomer(simulator);
    await asked;
    assert.equal(await simulator.end('SIGTERM'), 0);
    silent.close();
    silent.closeAllConnections();
  });

  it('exits when its parent is gone', async () => {
    simulator = await SimulatorProcess.start(nowhere);
    await simulator.abandon();
  });
});
