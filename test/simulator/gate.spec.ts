/** Pages of other origins, names that point here and other users of the machine get nothing from the simulator. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { SimulatorProcess, TOKEN, WebhookReceiver } from './simulator-process.ts';

describe("the simulator's gate", () => {
  let receiver: WebhookReceiver;
  let simulator: SimulatorProcess;

  before(async () => {
    receiver = await WebhookReceiver.listen();
    simulator = await SimulatorProcess.start(receiver.url);
  });

  after(async () => {
    await simulator.remove();
    receiver.close();
  });

  const JSON_TYPE = { 'content-type': 'application/json' };
  const CONTROL = { ...JSON_TYPE, 'x-simulator-token': TOKEN };

  /** With any Host header, which fetch does not allow. */
  function statusOf(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body = '',
  ): Promise<number | undefined> {
    const { port } = simulator;
    return new Promise((resolve, reject) => {
      const options = { method, path, port, host: '127.0.0.1', headers };
      request(options, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end(body);
    });
  }

  const modeNow = async () => (await simulator.control<{ mode: string }>('GET', 'webhooks')).mode;

  it('accepts no control from a page: of another origin, as text, or without the token', async () => {
    const drop = JSON.stringify({ mode: 'drop' });
    const post = (headers: Readonly<Record<string, string>>) =>
      statusOf('POST', '/_simulator/webhooks', headers, drop);
    assert.equal(await post({ ...CONTROL, origin: 'https://evil.example' }), 403);
    assert.equal(await post({ ...CONTROL, origin: 'null' }), 403);
    assert.equal(await post({ ...CONTROL, origin: 'http://127.0.0.1:1' }), 403);
    assert.equal(await post({ ...CONTROL, host: 'evil.example' }), 403);
    assert.equal(await post({ ...CONTROL, 'content-type': 'text/plain' }), 415);
    assert.equal(await post(JSON_TYPE), 401);
    assert.equal(await post({ ...JSON_TYPE, 'x-simulator-token': `${TOKEN}x` }), 401);
    assert.equal(await statusOf('DELETE', '/_simulator/faults', JSON_TYPE), 401);
    assert.equal(await modeNow(), 'deliver');
    assert.equal(await post(CONTROL), 200);
    assert.equal(await modeNow(), 'drop');
  });

  it('shows payments to anyone with the URL that the start prints, and to nobody else', async () => {
    assert.equal(await statusOf('GET', `/_simulator/payments?token=${TOKEN}`, {}), 200);
    assert.equal(await statusOf('GET', '/_simulator/payments', {}), 401);
    assert.equal(await statusOf('GET', '/_simulator/payments?token=', {}), 401);
  });

  it('answers only to names of this machine, pages and API alike', async () => {
    for (const path of ['/pay/cs_test_none', '/v1/customers', '/_simulator/payments']) {
      for (const host of [
        'evil.example',
        `evil.example:${simulator.port}`,
        '127.0.0.1.evil.example',
      ]) {
        assert.equal(await statusOf('GET', path, { ...CONTROL, host }), 403);
      }
    }
    for (const host of ['localhost', '127.0.0.1', '[::1]']) {
      const named = { host: `${host}:${simulator.port}` };
      assert.equal(await statusOf('GET', '/pay/cs_test_none', named), 404);
    }
  });

  it('lets no page of another origin pay', async () => {
    const session = await simulator.stripe.checkout.sessions.create({
      mode: 'payment',
      success_url: 'http://127.0.0.1/',
      line_items: [
        {
          quantity: 1,
          price_data: { currency: 'usd', unit_amount: 500, product_data: { name: 'x' } },
        },
      ],
    });
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const pay = (origin: string) =>
      statusOf('POST', `/pay/${session.id}`, { ...form, origin }, 'card=4242424242424242');
    assert.equal(await pay('https://evil.example'), 403);
    assert.equal((await simulator.stripe.checkout.sessions.retrieve(session.id)).status, 'open');
    assert.equal(await pay(`http://127.0.0.1:${simulator.port}`), 200);
  });
});
