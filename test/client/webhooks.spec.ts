/** The client accepts an event that is signed as Standard Webhooks specifies, and nothing else. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { FareboxError } from '../../client/index.js';
import { verifyWebhook } from '../../client/webhooks.js';
import { WebhookSigner } from '../../src/events/signing.ts';
import { readMasterSecrets } from '../../src/read-setting.ts';

/** Read when a test needs it: a run may have loaded this file long before. */
const nowSeconds = () => Math.floor(Date.now() / 1_000);
const ENDPOINT = '019a2058-eb84-752c-a638-7e760f27a74d';
const event = {
  type: 'key.revoked',
  timestamp: '2026-11-21T09:16:13.669Z',
  data: { lastFour: 'x9Qz' },
};
const body = JSON.stringify(event);

const refuses = (request: Parameters<typeof verifyWebhook>[0], message: RegExp) =>
  assert.rejects(verifyWebhook(request), (error) => {
    assert.ok(FareboxError.isInstance(error) && error.code === 'invalid_signature');
    assert.match(error.message, message);
    return true;
  });

describe('client: an event', () => {
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const signed = (by = secret, seconds = nowSeconds()): Record<string, string> => ({
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(seconds),
    'webhook-signature': new Webhook(by).sign('evt_1', new Date(seconds * 1_000), body),
  });
  it('is returned with its id, from either form of headers and body', async () => {
    const expected = { id: 'evt_1', ...event };
    const headers = signed();
    assert.deepEqual(await verifyWebhook({ body, headers, secret }), expected);
    const bytes = new TextEncoder().encode(body);
    const request = { body: bytes, headers: new Headers(headers), secret };
    assert.deepEqual(await verifyWebhook(request), expected);
    const toleranceSeconds = undefined;
    assert.deepEqual(await verifyWebhook({ ...request, toleranceSeconds }), expected);
  });

  it('is read from headers in any case, and from those given as arrays', async () => {
    const expected = { id: 'evt_1', ...event };
    const headers = signed();
    const capitalized = Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]);
    const request = { body, secret, headers: Object.fromEntries(capitalized) };
    assert.deepEqual(await verifyWebhook(request), expected);
    const arrays = Object.entries(headers).map(([name, value]) => [name, [value]]);
    const once = { body, secret, headers: Object.fromEntries(arrays) };
    assert.deepEqual(await verifyWebhook(once), expected);
    const twice = { ...headers, 'webhook-id': ['evt_1', 'evt_2'] };
    await refuses({ body, secret, headers: twice }, /no signature/);
  });

  it('that was already parsed, or whose body Express did not read, is refused with an error that says so', async () => {
    const headers = signed();
    const bodies: readonly unknown[] = [event, {}, undefined, null];
    for (const parsed of bodies) {
      const request = { body: parsed as string, headers, secret };
      await refuses(request, /exactly as it arrived.*express\.raw/);
    }
    const { buffer } = new TextEncoder().encode(body);
    const bytes = new Uint8Array(buffer);
    assert.equal((await verifyWebhook({ body: bytes, headers, secret })).id, 'evt_1');
  });

  it('of Farebox is verified with either secret after a roll', async () => {
    const list = `2:${'b'.repeat(32)},1:${'a'.repeat(32)}`;
    const signer = new WebhookSigner(readMasterSecrets({ MASTER_SECRET: list }));
    const [old, next] = [
      { secret: 1, master: 1 },
      { secret: 2, master: 2 },
    ];
    const message = { id: 'evt_1', timestamp: nowSeconds(), body };
    const headers = {
      ...signed(),
      'webhook-signature': signer.sign(ENDPOINT, [next, old], message),
    };
    for (const numbers of [old, next]) {
      await verifyWebhook({ body, headers, secret: signer.secretOf(ENDPOINT, numbers) });
    }
    const other = signer.secretOf('019a2058-eb84-752c-a638-7e760f27a74e', old);
    await refuses({ body, headers, secret: other }, /no signature/);
  });

  it('is refused when it was changed, signed by another secret or long ago, or not signed', async () => {
    const headers = signed();
    await refuses({ body: body.replace('x9Qz', 'x9Qy'), headers, secret }, /no signature/);
    await refuses({ body, headers: { ...headers, 'webhook-id': 'evt_2' }, secret }, /no signature/);
    await refuses({ body, headers: signed(`whsec_${btoa('another')}`), secret }, /no signature/);
    await refuses({ body, headers: signed(secret, nowSeconds() - 301), secret }, /another time/);
    await refuses({ body, headers: signed(secret, nowSeconds() + 600), secret }, /another time/);
    await refuses({ body, headers: { ...headers, 'webhook-timestamp': 'now' }, secret }, /time/);
    await refuses({ body, headers: {}, secret }, /missing/);
    const odd = { ...headers, 'webhook-signature': 'v1,* v1a,AAAA v1,' };
    await refuses({ body, headers: odd, secret }, /no signature/);
    const later = headers['webhook-signature']?.replace('v1,', 'v2,') ?? '';
    const ofVersion2 = { ...headers, 'webhook-signature': later };
    await refuses({ body, headers: ofVersion2, secret }, /no signature/);
    await verifyWebhook({
      body,
      headers: signed(secret, nowSeconds() - 400),
      secret,
      toleranceSeconds: 600,
    });
  });

  it('is not verified with something that is no secret', async () => {
    for (const wrong of ['', 'whsec_*', 'fare_sk_live_x']) {
      await assert.rejects(verifyWebhook({ body, headers: signed(), secret: wrong }), TypeError);
    }
  });
});
