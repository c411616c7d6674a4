/** Connections to Stripe that are kept between calls and die unnoticed, as at a firewall that forgets them. */
import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { Stripe } from 'stripe';
import { createCustomer, createStripe } from '../../src/stripe/calls.ts';
import { startFaultyLine, type FaultyLine } from '../support/faulty-line.ts';
import { closeNow, listenOnLoopback } from '../support/loopback.ts';

const ACCOUNT_ID = '0198f3a2-0000-7000-8000-000000000001';

describe('a connection to Stripe', () => {
  /** The idempotency key of each call that arrived. */
  const arrived: unknown[] = [];
  let answer: (response: ServerResponse) => void;
  const server = createServer((request, response) => {
    arrived.push(request.headers['idempotency-key']);
    request.resume();
    answer(response);
  });
  let line: FaultyLine;
  let stripe: Stripe;

  before(async () => {
    line = await startFaultyLine({ host: '127.0.0.1', port: await listenOnLoopback(server) });
    stripe = createStripe({
      secretKey: 'sk_test_x',
      apiBase: new URL(`http://127.0.0.1:${line.port}`),
      webhookSecrets: [],
      timeoutMs: 12_000,
      stepsPerSecond: 10,
      tax: undefined,
    });
  });
  beforeEach(() => {
    arrived.length = 0;
    answer = answerAtOnce;
  });
  after(async () => {
    await line?.stop();
    await closeNow(server);
  });

  const create = () => createCustomer(stripe, ACCOUNT_ID);

  it('is replaced when it was kept and is dead, as are all that were kept beside it', async () => {
    assert.deepEqual(await Promise.all([create(), create(), create()]), Array(3).fill('cus_1'));
    line.forget();
    assert.equal(await create(), 'cus_1');
    assert.equal(arrived.length, 4);
  });

  it('is replaced when it was kept and an answer takes long; the repeated call has the same key', async () => {
    await create();
    arrived.length = 0;
    const waiting: ServerResponse[] = [];
    answer = (response) => {
      waiting.push(response);
      if (waiting.length === 2) answerAtOnce(response);
    };
    assert.equal(await create(), 'cus_1');
    assert.equal(arrived.length, 2);
    assert.equal(new Set(arrived).size, 1);
  });
});

function answerAtOnce(response: ServerResponse): void {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ id: 'cus_1', object: 'customer' }));
}
