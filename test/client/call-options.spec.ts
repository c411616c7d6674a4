/** Options of a single call: a timeout, and a signal that aborts it. */
import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { Farebox, FareboxConsumer, FareboxError, type CallOptions } from '@farebox/client';
import type { FareboxOptions } from '@farebox/client';
import { until } from '../support/stack.ts';
import {
  ScriptedService,
  answer,
  charged,
  raised,
  refusal,
  silence,
  type Step,
} from './scripted-service.ts';

const secretKey = 'fare_sk_live_x';
const search = { apiKey: 'fare_ck_live_x', tool: 'search', amount: 0.02 };

async function service(...script: [Step, ...Step[]]) {
  const scripted = await ScriptedService.start(...script);
  const farebox = (options: FareboxOptions = {}) =>
    new Farebox({ secretKey, baseUrl: scripted.url, timeoutMs: 60_000, ...options });
  return Object.assign(scripted, { farebox });
}

const deaf = () => new Promise<Response>(() => {});

describe('client: a call by a fetch of the caller', () => {
  const asks: Readonly<Record<string, (farebox: Farebox) => Promise<unknown>>> = {
    charge: (farebox) => farebox.charge(search),
    refund: (farebox) => farebox.refund({ chargeId: 'chg_1' }),
  };
  const fetches: Readonly<Record<string, () => Promise<Response>>> = {
    'does not heed the signal': deaf,
    'begins an answer and does not heed the signal': async () => new Response(new ReadableStream()),
    'fails without a reason': () => Promise.reject(null),
  };
  for (const [how, fetch] of Object.entries(fetches)) {
    for (const [name, ask] of Object.entries(asks)) {
      it(`ends in time when it ${how}: ${name}`, async () => {
        const options = { secretKey, baseUrl: 'http://farebox', timeoutMs: 100, maxRetries: 0 };
        const error = await raised(ask(new Farebox({ ...options, fetch })));
        assert.deepEqual([error.code, error.outcome], ['service_unavailable', 'unknown']);
      });
    }
  }

  it('ends when the caller aborts it, even if the fetch does not heed the signal', async () => {
    const farebox = new Farebox({ secretKey, baseUrl: 'http://farebox', fetch: deaf });
    const caller = new AbortController();
    const asked = raised(farebox.refund({ chargeId: 'chg_1' }, { signal: caller.signal }));
    setImmediate(() => caller.abort());
    assert.equal((await asked).code, 'aborted');
  });
});

describe('client: a call with its own timeout', () => {
  it('ends within it, regardless of the client’s', async () => {
    await using api = await service(silence);
    // Longer than a test may take.
    const patient = { maxRetries: 0, timeoutMs: 3_600_000 };
    const calls = [
      (options: CallOptions) => api.farebox(patient).charge(search, options),
      (options: CallOptions) =>
        api.farebox({ ...patient, coalesce: false }).charge(search, options),
      (options: CallOptions) => api.farebox(patient).earnings({}, options),
    ];
    for (const call of calls) {
      const error = await raised(call({ timeoutMs: 200 }));
      assert.equal(error.code, 'service_unavailable');
    }
  });

  for (const timeoutMs of [0, -1, 1.5, '1', 2 ** 31]) {
    it(`refuses ${timeoutMs} as its timeout`, async () => {
      await using api = await service(charged);
      const options = { timeoutMs: timeoutMs as number };
      await assert.rejects(api.farebox().charge(search, options), TypeError);
      await assert.rejects(api.farebox().earnings({}, options), TypeError);
      assert.equal(api.seen.length, 0);
    });
  }
});

describe('client: a call that pays', () => {
  const consumerKey = 'fare_ck_live_x';
  const paid = { topUpId: 'tu_1', amount: 5, balance: 5, status: 'pending' };
  /** The largest value of the setting TOP_UP_ANSWER_MS. */
  const TOP_UP_ANSWER_MS_MAX = 60_000;
  const slow: Step = (response, request) =>
    void setTimeout(() => answer(202, paid)(response, request), 5_500);

  it('waits longer than others, because the service takes ten seconds to say that it is pending', async () => {
    await using api = await service(slow);
    const consumer = new FareboxConsumer({ consumerKey, baseUrl: api.url, maxRetries: 0 });
    assert.equal((await consumer.topUp({ amount: 5 })).status, 'pending');
  });

  const payments: Readonly<
    Record<string, (consumer: FareboxConsumer) => Promise<{ status: string }>>
  > = {
    'a top-up': (consumer) => consumer.topUp({ amount: 5 }),
    'a decision to top up': (consumer) =>
      consumer.approvals.decide('apr_1', { decision: 'top_up' }),
  };
  for (const [what, pay] of Object.entries(payments)) {
    it(`waits for ${what} as long as an operator may let the service wait`, async () => {
      const sent = Promise.withResolvers<void>();
      const { promise, resolve, reject } = Promise.withResolvers<Response>();
      const fetch: FareboxOptions['fetch'] = (_, options) => {
        options?.signal?.addEventListener('abort', () => reject(new Error('given up')));
        sent.resolve();
        return promise;
      };
      mock.timers.enable({ apis: ['setTimeout'] });
      try {
        const options = { consumerKey, baseUrl: 'https://farebox.example', maxRetries: 0, fetch };
        // The timeout of the client is meant for calls that do not wait for a payment.
        const paying = pay(new FareboxConsumer({ ...options, timeoutMs: 100 }));
        await sent.promise;
        mock.timers.tick(TOP_UP_ANSWER_MS_MAX);
        resolve(Response.json(paid, { status: 202 }));
        assert.equal((await paying).status, 'pending');
      } finally {
        mock.timers.reset();
      }
    });
  }

  it('ends within its own timeout', async () => {
    await using api = await service(silence);
    const consumer = new FareboxConsumer({ consumerKey, baseUrl: api.url, maxRetries: 0 });
    const error = await raised(consumer.checkout({ amount: 5 }, { timeoutMs: 100 }));
    assert.deepEqual([error.code, error.outcome], ['service_unavailable', 'unknown']);
  });

  for (const [what, pay] of Object.entries(payments)) {
    it(`leaves it to the caller whether to repeat ${what} after a long wait`, async () => {
      await using api = await service(refusal(429, 'rate_limited', {}, '60'), answer(201, paid));
      const error = await raised(pay(new FareboxConsumer({ consumerKey, baseUrl: api.url })));
      assert.deepEqual([error.code, error.outcome], ['rate_limited', 'not_done']);
      assert.deepEqual([error.retryAfterMs, api.seen.length], [60_000, 1]);
    });
  }
});

describe('client: a call with a signal', () => {
  for (const coalesce of [true, false]) {
    const how = coalesce ? 'together with others' : 'alone';

    it(`reports a charge that was sent ${how} as unknown, with the key to find out`, async () => {
      await using api = await service(silence);
      const caller = new AbortController();
      const charging = raised(api.farebox({ coalesce }).charge(search, { signal: caller.signal }));
      await until(() => api.seen.length === 1);
      caller.abort(new Error('the user left'));
      const error = await charging;
      assert.deepEqual([error.code, error.outcome], ['aborted', 'unknown']);
      assert.equal(error.idempotencyKey, api.keys[0]);
      assert.equal((error.cause as Error).message, 'the user left');
      assert.equal(api.seen.length, 1);
    });

    it(`sends no charge ${how} when it was aborted before`, async () => {
      await using api = await service(charged);
      const signal = AbortSignal.abort();
      const error = await raised(api.farebox({ coalesce }).charge(search, { signal }));
      assert.deepEqual([error.code, error.outcome], ['aborted', 'not_charged']);
      assert.equal(api.seen.length, 0);
    });

    it(`is not retried after an abort, ${how}`, async () => {
      await using api = await service(refusal(503, 'service_unavailable', {}, '30'), charged);
      const caller = new AbortController();
      const farebox = api.farebox({ coalesce });
      const charging = raised(farebox.charge(search, { signal: caller.signal }));
      // The answer has come: the client waits to send the charge again.
      await until(() => farebox.lastRequestId === 'req_1');
      caller.abort();
      const error = await charging;
      assert.deepEqual([error.code, error.outcome], ['aborted', 'not_charged']);
      assert.equal(api.seen.length, 1);
    });
  }

  it('never sends a charge that was aborted while it waited behind others', async () => {
    const waiting: (() => void)[] = [];
    const held: Step = (...asked) => void waiting.push(() => charged(...asked));
    await using api = await service(held, held, charged);
    const farebox = api.farebox();
    const first = [farebox.charge(search)];
    await until(() => api.seen.length === 1);
    first.push(farebox.charge(search));
    await until(() => api.seen.length === 2);
    const caller = new AbortController();
    const aborted = raised(farebox.charge(search, { signal: caller.signal }));
    caller.abort();
    assert.equal((await aborted).outcome, 'not_charged');
    for (const go of waiting) go();
    await Promise.all(first);
    assert.equal(api.seen.length, 2);
  });

  it('does not count an abort as unavailability: the tool does not run unpaid', async () => {
    await using api = await service(silence);
    const farebox = api.farebox();
    const signal = AbortSignal.abort();
    const request = { ...search, onUnavailable: 'run_unpaid' as const };
    assert.equal((await raised(farebox.charge(request, { signal }))).code, 'aborted');
  });

  const question = answer(200, { id: 'apr_1', status: 'pending' });
  for (const [when, ...steps] of [
    ['is asked', silence],
    ['decides', question, silence],
  ] as const) {
    it(`is aborted while the owner ${when}, and is as unpaid as the refusal said`, async () => {
      await using api = await service(refusal(402, 'insufficient_balance'), ...steps);
      const caller = new AbortController();
      const asking = { ...search, ask: true } as const;
      const charging = raised(api.farebox().charge(asking, { signal: caller.signal }));
      await until(() => api.seen.length === 1 + steps.length);
      caller.abort(new Error('the user left'));
      const error = await charging;
      assert.deepEqual([error.code, error.outcome], ['aborted', 'not_charged']);
      assert.equal(error.idempotencyKey, api.keys[0]);
      assert.equal((error.cause as Error).message, 'the user left');
    });
  }

  it('says of no read that it may have had an effect, also if it is a POST', async () => {
    await using api = await service((response) => response.destroy());
    const farebox = api.farebox();
    const consumer = new FareboxConsumer({ consumerKey: search.apiKey, baseUrl: api.url });
    for (const read of [
      () => farebox.tools.get('tool_1'),
      () => farebox.quote({ tool: 'llm', units: { input: 7 } }),
      () => consumer.verifyReceipt('hmac_sha256.1.e30.x'),
    ]) {
      const error = await raised(read());
      assert.deepEqual([error.code, error.outcome], ['service_unavailable', 'not_done']);
      assert.match(error.message, /^Farebox cannot be reached/);
    }
  });

  it('aborts refunds, reads and lists as well', async () => {
    await using api = await service(answer(200, { charges: [{}], hasMore: true, nextCursor: 'x' }));
    const options = { signal: AbortSignal.abort() };
    const farebox = api.farebox();
    const consumer = new FareboxConsumer({ consumerKey: search.apiKey, baseUrl: api.url });
    const refund = await raised(farebox.refund({ chargeId: 'chg_1' }, options));
    assert.deepEqual([refund.code, refund.outcome], ['aborted', 'not_refunded']);
    assert.equal(refund.message, 'The call was aborted; nothing was refunded.');
    const read = await raised(consumer.balance(options));
    assert.deepEqual([read.code, read.outcome], ['aborted', 'not_done']);
    assert.equal(read.message, 'The call was aborted.');
    const caller = new AbortController();
    const listing = (async () => {
      for await (const _ of farebox.charges.list({}, { signal: caller.signal })) caller.abort();
    })();
    assert.equal((await raised(listing)).code, 'aborted');
    assert.equal(api.seen.length, 1);
  });
});

describe('client: an error', () => {
  it('appears complete in a structured log: message and cause, and no key', async () => {
    await using api = await service(silence);
    await api.close();
    const error = await raised(api.farebox().charge(search));
    const logged = JSON.parse(JSON.stringify({ error })) as { error: Record<string, unknown> };
    assert.partialDeepStrictEqual(logged.error, {
      name: 'ServiceUnavailableError',
      code: 'service_unavailable',
      message: error.message,
      outcome: 'not_charged',
    });
    assert.match(String(logged.error['cause']), /ECONNREFUSED/);
    assert.doesNotMatch(JSON.stringify(logged), /fare_[cs]k/);
  });

  it('says that nothing was signed when a public receipt cannot be made', async () => {
    await using api = await service(refusal(503, 'service_unavailable'));
    const asked = api.farebox({ maxRetries: 0 }).publicReceipt('hmac_sha256.1.e30.c2ln');
    const expected: FareboxError['outcome'] = 'not_signed';
    assert.equal((await raised(asked)).outcome, expected);
  });

  it('has each fact that the service tells, also one that this version of the client does not know', async () => {
    const facts = { topUpId: 'tu_1', left: 3.5, retryAfter: 40, resetsAt: null, news: 'a fact' };
    const told = refusal(403, 'consent_ceiling_reached', facts, '40');
    const closed = refusal(409, 'lease_closed', { status: 'released' });
    await using api = await service(told, closed);
    const error = await raised(api.farebox().charge(search));
    assert.deepEqual([error.topUpId, error.left, error.retryAfterMs], ['tu_1', 3.5, 40_000]);
    assert.equal(error.resetsAt, undefined);
    assert.equal(error.toJSON()['news'], 'a fact');
    assert.ok(!('retryAfter' in error));
    const { status, objectStatus } = await raised(api.farebox().charge(search));
    assert.deepEqual([status, objectStatus], [409, 'released']);
  });

  it('has its own name, stack and cause, even if the response contains members with these names', async () => {
    const body = JSON.parse(
      '{"error":{"code":"not_found","stack":1,"toJSON":2,"name":3,"cause":4,"__proto__":{"a":5}}}',
    ) as object;
    await using api = await service(answer(404, body));
    const error = await raised(api.farebox().charge(search));
    assert.deepEqual(
      [error.code, error.name, error.cause],
      ['not_found', 'FareboxError', undefined],
    );
    assert.ok(FareboxError.isInstance(error) && error instanceof FareboxError);
    assert.match(error.stack ?? '', /not_found/);
    assert.equal(error.toJSON()['code'], 'not_found');
  });

  it('has the status of a missing key, though nothing was sent', async () => {
    await using api = await service(charged);
    const error = await raised(api.farebox().charge({ ...search, apiKey: undefined }));
    assert.deepEqual([error.code, error.status], ['invalid_api_key', 401]);
    assert.match(error.message, /missing, or .* more than one/);
  });

  it('of an invalid key has the page of the console where a key is made', async () => {
    const keysUrl = 'https://billing.example.com/console/keys';
    await using api = await service(refusal(401, 'invalid_api_key', { keysUrl }));
    const error = await raised(api.farebox().charge(search));
    assert.equal(error.keysUrl, keysUrl);
  });

  it('reports a key of the wrong side when the client is created', () => {
    const baseUrl = 'http://127.0.0.1';
    assert.throws(
      () => new Farebox({ secretKey: search.apiKey, baseUrl }),
      (error: Error) => error instanceof TypeError && /consumer key/.test(error.message),
    );
    assert.throws(
      () => new FareboxConsumer({ consumerKey: secretKey, baseUrl }),
      (error: Error) => error instanceof TypeError && /secret key/.test(error.message),
    );
  });
});
