/** An in-process Farebox for unit tests: no server, no network, the same client. testing.d.ts documents all. */
import { FareboxConsumer } from './consumer.js';
import { FakeLedger } from './fake-ledger.js';
import { FakeRefusal } from './fake-refusal.js';
import { answerOf } from './fake-routes.js';
import { Farebox } from './farebox.js';
import { amountToSend } from './money.js';

export class FakeFarebox {
  baseUrl = 'https://fake.farebox.example';
  secretKey = 'fare_sk_test_fake';
  isAway = false;
  #ledger = new FakeLedger();

  addConsumer({ balance = 0 } = {}) {
    return this.#ledger.addConsumer(amountToSend(balance, 'balance'));
  }

  farebox(options) {
    const { baseUrl, secretKey, fetch } = this;
    return new Farebox({ baseUrl, secretKey, fetch, maxRetries: 0, ...options });
  }

  consumer(consumerKey, options) {
    const { baseUrl, fetch } = this;
    return new FareboxConsumer({ baseUrl, consumerKey, fetch, maxRetries: 0, ...options });
  }

  fetch = async (url, { method = 'GET', headers, body, signal } = {}) => {
    const requestId = `req_${crypto.randomUUID().replaceAll('-', '')}`;
    const common = { 'content-type': 'application/json', 'x-request-id': requestId };
    const answer = ({ status, body: answered, replayed }) => {
      const all = { ...common, ...(replayed && { 'idempotency-replayed': 'true' }) };
      const { retryAfter } = answered.error ?? {};
      if (retryAfter !== undefined) all['retry-after'] = String(retryAfter);
      return new Response(JSON.stringify(answered), { status, headers: all });
    };
    try {
      if (this.isAway) throw new FakeRefusal('service_unavailable', 'The fake is away.');
      const request = { method, url, headers: new Headers(headers), signal, requestId };
      request.body = body === undefined ? {} : JSON.parse(body);
      return answer(await answerOf(this.#ledger, this.secretKey, request));
    } catch (error) {
      if (!(error instanceof FakeRefusal)) throw error;
      return answer({ status: error.status, body: { error: { ...error.error, requestId } } });
    }
  };
}
