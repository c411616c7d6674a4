/** Paid calls against a service that answers by a script: what they do when its answers are lost or come to nothing. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import { Farebox, usd, type FareboxOptions, type OnUnavailable } from '@farebox/client';
import * as forExpress from '@farebox/client/express';
import * as forFastify from '@farebox/client/fastify';
import * as forFetch from '@farebox/client/fetch';
import * as forHono from '@farebox/client/hono';
import * as forKoa from '@farebox/client/koa';
import { paidTool } from '@farebox/client/mcp';
import type { PaidOptions } from '../../client/paid.js';
import {
  answer,
  droppedLine,
  raised,
  refusal,
  ScriptedService,
  silence,
} from './scripted-service.ts';
import type { Step } from './scripted-service.ts';

interface Result {
  readonly isError?: boolean;
  readonly _meta?: { readonly 'farebox/error': Readonly<Record<string, unknown>> };
}

const errorIn = ({ _meta: meta }: Result) => meta?.['farebox/error'];

type Options = PaidOptions<[], { content: never[] }>;

const search = { apiKey: 'fare_ck_live_x', tool: 'search', amount: 0.02 };
const poor = refusal(402, 'insufficient_balance', { balance: 0, required: 0.02, shortfall: 0.02 });
const question = answer(200, { id: 'apr_1', status: 'pending' });

/** A function in JavaScript that returns what is no amount. */
const returns = (value: unknown) => () => value as number;
const endless = () => new Promise<never>(() => {});

async function service(...script: [Step, ...Step[]]) {
  const scripted = await ScriptedService.start(...script);
  const farebox = (options: FareboxOptions<OnUnavailable> = {}) =>
    new Farebox<OnUnavailable>({
      secretKey: 'fare_sk_live_x',
      baseUrl: scripted.url,
      maxRetries: 0,
      ...options,
    });
  return Object.assign(scripted, { farebox });
}

/** A paid tool that counts its runs, and how it is called. */
function toolOf(farebox: Farebox<OnUnavailable>, options: Options) {
  const ran = { times: 0 };
  const tool = paidTool(farebox, options, async () => {
    ran.times += 1;
    return { content: [] };
  }) as unknown as (input: object, context: object) => Promise<Result>;
  const headers = new Headers({ 'x-service-key': search.apiKey });
  return {
    ran,
    call: (signal?: AbortSignal) => tool({}, { requestInfo: { headers }, signal }),
  };
}

describe('client: paid calls that ask the owner', () => {
  const ask = { timeoutMs: 1 };

  it('do not run unpaid when Farebox goes away after the refusal', async () => {
    await using api = await service(poor, question, droppedLine);
    const options = { tool: 'search', price: '0.02', ask, onUnavailable: 'run_unpaid' } as const;
    const { ran, call } = toolOf(api.farebox(), options);
    const error = errorIn(await call());
    assert.partialDeepStrictEqual(error, { code: 'insufficient_balance', approvalId: 'apr_1' });
    assert.equal(ran.times, 0);
  });

  it('raise the refusal when Farebox goes away during the wait', async () => {
    await using api = await service(poor, question, droppedLine);
    const error = await raised(api.farebox().charge({ ...search, ask }));
    const { code, outcome, approvalId, approvalStatus } = error;
    assert.deepEqual(
      [code, outcome, approvalId, approvalStatus],
      ['insufficient_balance', 'not_charged', 'apr_1', 'pending'],
    );
  });
});

describe('client: paid calls that are refused with a code that this version does not know', () => {
  for (const [type, status] of [
    ['payment_error', 402],
    ['rate_limit_error', 429],
  ] as const) {
    it(`tell their caller, when its type is ${type}`, async () => {
      const facts = { type, payUrl: 'https://farebox.example/pay' };
      await using api = await service(refusal(status, 'new_code', facts));
      const { ran, call } = toolOf(api.farebox(), { tool: 'search', price: 1 });
      const told = { ...facts, code: 'new_code', status, outcome: 'not_held' };
      assert.partialDeepStrictEqual(errorIn(await call()), told);
      assert.equal(ran.times, 0);
    });
  }

  it('hide it as their own mistake, when it has another type', async () => {
    const facts = { type: 'invalid_request_error', own: 'x' };
    await using api = await service(refusal(400, 'new_code', facts));
    const { call } = toolOf(api.farebox(), { tool: 'search', price: 1 });
    assert.deepEqual(Object.keys(errorIn(await call()) ?? {}).toSorted(), [
      'code',
      'message',
      'outcome',
      'requestId',
    ]);
  });
});

describe('client: paid calls while Farebox is away', () => {
  const price = { tool: 'search', price: 1 };
  for (const [name, unavailable, runs] of [
    ['run when the client says so', {}, 1],
    ['do not run when they say so themselves', { onUnavailable: 'fail' }, 0],
  ] as const) {
    it(name, async () => {
      await using api = await service(refusal(503, 'service_unavailable'));
      const farebox = api.farebox({ onUnavailable: 'run_unpaid' });
      const { ran, call } = toolOf(farebox, { ...price, ...unavailable });
      await call();
      assert.equal(ran.times, runs);
    });
  }

  it('give the result that could not be paid for when the client says so', async () => {
    const held = answer(201, { id: 'hld_1', status: 'open' });
    await using api = await service(held, refusal(503, 'service_unavailable'));
    const { call } = toolOf(api.farebox({ onUnavailable: 'run_unpaid' }), price);
    assert.equal((await call()).isError, undefined);
  });
});

describe('client: paid calls that are settled', () => {
  const held = answer(201, { id: 'hld_1', status: 'open' });
  const unrounded = usd(1).per(3);
  const objects = [{}, Object.create(null), unrounded];
  const unusable = [
    undefined,
    null,
    NaN,
    Infinity,
    -1,
    '',
    'a lot',
    '-1',
    '0.0000001',
    true,
    ...objects,
  ];

  for (const cost of unusable) {
    it(`release the hold and report an error when the cost is ${inspect(cost)}`, async () => {
      await using api = await service(held, answer(200, { id: 'hld_1' }));
      const options = { tool: 'search', max: 2, settle: returns(cost) };
      const { ran, call } = toolOf(api.farebox(), options);
      const { isError, _meta: meta } = await call();
      assert.equal(isError, true);
      assert.partialDeepStrictEqual(meta?.['farebox/error'], {
        code: 'billing_error',
        outcome: 'not_charged',
      });
      assert.deepEqual(
        api.seen.map(({ path }) => path),
        ['/v1/holds', '/v1/holds/hld_1/release'],
      );
      assert.equal(ran.times, 1);
    });
  }

  const revoked = refusal(401, 'invalid_secret_key');
  const closed = refusal(409, 'hold_closed', { status: 'released' });
  const released = answer(200, { id: 'hld_1' });

  it('tell their caller at once that nothing was charged when the hold of a lost capture was released', async () => {
    const free = answer(200, { id: 'hld_1', status: 'released', captured: 0 });
    await using api = await service(held, droppedLine, free);
    const { call } = toolOf(api.farebox(), { tool: 'search', price: 1 });
    const told = { code: 'service_unavailable', outcome: 'not_charged', status: 503 };
    assert.partialDeepStrictEqual(errorIn(await call()), told);
    const captures = api.seen.filter(({ path }) => path?.endsWith('/capture'));
    assert.equal(captures.length, 1);
  });

  it('ask again for a lost capture of which something was captured', async () => {
    const taken = answer(200, { id: 'hld_1', status: 'released', captured: 1 });
    const paid = answer(201, { id: 'chg_1', receipt: 'hmac_sha256.1.e30.c2ln' });
    await using api = await service(held, droppedLine, taken, paid);
    const { call } = toolOf(api.farebox(), { tool: 'search', price: 1 });
    assert.equal((await call()).isError, undefined);
  });

  it('give no status and no key with which a call that may have been paid would be repeated', async () => {
    await using api = await service(held, droppedLine);
    const route = forFetch.paidRoute(
      api.farebox(),
      { tool: 'search', price: 1 },
      () => new Response('found'),
    );
    const headers = { 'x-service-key': search.apiKey };
    const response = await route(new Request('http://x/', { headers }));
    assert.deepEqual([response.status, response.headers.get('retry-after')], [500, null]);
    const { error } = (await response.json()) as { error: object };
    const message =
      'The call may have been paid. The usage of the key shows whether it was; calling again may pay again.';
    assert.deepEqual(error, { code: 'billing_error', message, outcome: 'unknown' });
  });

  it('show their caller no idempotency key of theirs', async () => {
    await using api = await service(poor);
    const { call } = toolOf(api.farebox(), { tool: 'search', price: 1 });
    const error = errorIn(await call());
    assert.deepEqual(
      [error?.['code'], error?.['idempotencyKey']],
      ['insufficient_balance', undefined],
    );
  });

  for (const [name, release, again, told] of [
    ['nothing', revoked, revoked, { code: 'billing_error', outcome: 'unknown' }],
    ['no charge', released, closed, { code: 'service_unavailable', outcome: 'not_charged' }],
  ] as const) {
    it(`report a lost capture when the retry tells ${name} of it`, async () => {
      await using api = await service(held, droppedLine, release, again);
      const { call } = toolOf(api.farebox(), { tool: 'search', price: 1 });
      const result = await call();
      assert.partialDeepStrictEqual(errorIn(result), told);
      assert.doesNotMatch(JSON.stringify(result), /did not run/);
      const [, capture = '', gone = ''] = api.seen.map(({ path }) => path);
      assert.match(gone, /release$/);
      assert.deepEqual([api.seen[3]?.path, api.keys[3]], [capture, api.keys[1]]);
    });
  }

  it('tell their caller that nothing was charged when their hold is closed before the capture', async () => {
    await using api = await service(held, closed, closed);
    const { ran, call } = toolOf(api.farebox(), { tool: 'search', price: 1 });
    const result = await call();
    assert.equal(result.isError, true);
    assert.partialDeepStrictEqual(errorIn(result), {
      code: 'hold_closed',
      outcome: 'not_charged',
      status: 409,
      objectStatus: 'released',
      message: 'The hold of this call was released or has expired; nothing was charged.',
    });
    assert.equal(ran.times, 1);
  });

  it('are not paid when they are canceled while their cost is computed', async () => {
    await using api = await service(held, released);
    const user = new AbortController();
    const settle = () => {
      user.abort();
      return 1;
    };
    const { call } = toolOf(api.farebox(), { tool: 'search', max: 2, settle });
    assert.equal(errorIn(await call(user.signal))?.['code'], 'aborted');
    const paths = api.seen.map(({ path }) => path);
    assert.deepEqual([...new Set(paths)], ['/v1/holds', '/v1/holds/hld_1/release']);
  });

  it('are released when they are canceled while they are captured, and one of both is final', async () => {
    const user = new AbortController();
    let capturing: ServerResponse | undefined;
    const capture: Step = (response) => {
      capturing = response;
      user.abort();
    };
    const release: Step = (response, request) => {
      released(response, request);
      if (capturing) closed(capturing, request);
      capturing = undefined;
    };
    await using api = await service(held, capture, release);
    const { call } = toolOf(api.farebox(), { tool: 'search', price: 1 });
    assert.equal((await call(user.signal)).isError, true);
    assert.match(String(api.seen[2]?.path), /release$/);
  });

  for (const price of [0, '0', usd(0)]) {
    it(`run without a hold and a charge when their price comes to ${inspect(price)}`, async () => {
      await using api = await service(held);
      const { ran, call } = toolOf(api.farebox(), { tool: 'search', price: () => price });
      assert.deepEqual(await call(), { content: [] });
      assert.deepEqual([ran.times, api.seen], [1, []]);
    });
  }

  it('hold nothing when their price is a function that returns nothing', async () => {
    await using api = await service(held);
    const { ran, call } = toolOf(api.farebox(), { tool: 'search', price: returns(undefined) });
    assert.equal(errorIn(await call())?.['code'], 'billing_error');
    assert.deepEqual([ran.times, api.seen], [0, []]);
  });

  it('hold nothing and end when their price takes longer than a call may', async () => {
    await using api = await service(held);
    const { ran, call } = toolOf(api.farebox(), { tool: 'search', price: endless, timeoutMs: 1 });
    assert.equal(errorIn(await call())?.['code'], 'call_timed_out');
    assert.deepEqual([ran.times, api.seen], [0, []]);
  });

  it('hold nothing and end when they are canceled while their price is computed', async () => {
    await using api = await service(held);
    const user = new AbortController();
    const price = () => {
      user.abort();
      return endless();
    };
    const { ran, call } = toolOf(api.farebox(), { tool: 'search', price });
    assert.equal(errorIn(await call(user.signal))?.['code'], 'aborted');
    assert.deepEqual([ran.times, api.seen], [0, []]);
  });
});

describe('client: the options of a paid call', () => {
  const farebox = new Farebox({ secretKey: 'fare_sk_live_x', baseUrl: 'http://127.0.0.1:9' });
  const create: Readonly<Record<string, (options: never) => unknown>> = {
    mcp: (options) => paidTool(farebox, options, () => ({ content: [] })),
    express: (options) => forExpress.paidRoute(farebox, options),
    fastify: (options) => forFastify.paidRoute(farebox, options),
    fetch: (options) => forFetch.paidRoute(farebox, options, () => new Response('')),
    hono: (options) => forHono.paidRoute(farebox, options),
    koa: (options) => forKoa.paidRoute(farebox, options),
  };
  const times = [0, -1, 1.5, NaN, Infinity, 2 ** 31, '1'];
  const wrong: readonly object[] = [
    ...times.map((timeoutMs) => ({ timeoutMs })),
    // A hold lasts a day, and a minute more than its call.
    { timeoutMs: 86_340_001 },
    ...times.map((timeoutMs) => ({ ask: { timeoutMs } })),
    { onUnavailable: 'run' },
    { tool: undefined },
    { tool: '' },
    { tool: 7 },
    { price: undefined },
    { max: 1 },
    { price: undefined, max: 1 },
  ];
  for (const [name, of] of Object.entries(create)) {
    it(`are checked when it is created: ${name}`, () => {
      for (const options of wrong) {
        const given = { tool: 'search', price: 1, ...options } as never;
        assert.throws(() => of(given), TypeError, inspect(options));
      }
      for (const price of [
        0,
        -1,
        NaN,
        1_000_001,
        '0.0000001',
        '2e-2',
        'free',
        null,
        usd(1).per(3),
      ]) {
        const options = { tool: 'search', price } as never;
        assert.throws(() => of(options), RangeError, inspect(price));
        const atMost = { tool: 'search', max: price, settle: returns(1) } as never;
        assert.throws(() => of(atMost), RangeError, inspect(price));
      }
      of({ tool: 'search', price: usd('0.07').times(3) } as never);
      of({ tool: 'search', price: 1, timeoutMs: 86_340_000, ask: { timeoutMs: 1 } } as never);
      of({ tool: 'search', max: 1, settle: returns(1) } as never);
    });
  }

  it('that are missing, like a missing handler, get an error that says what belongs where', () => {
    for (const of of Object.values(create)) {
      assert.throws(() => of(undefined as never), /name of its tool/);
    }
    const options = { tool: 'search', price: 1 };
    const nothing = undefined as never;
    assert.throws(() => paidTool(farebox, options, nothing), /third argument/);
    assert.throws(() => forFetch.paidRoute(farebox, options, nothing), /third argument/);
  });

  it('of a charge that asks the owner are checked before it is sent', async () => {
    await using api = await service(poor);
    for (const timeoutMs of times) {
      const charging = api.farebox().charge({ ...search, ask: { timeoutMs: timeoutMs as number } });
      await assert.rejects(charging, TypeError);
    }
    assert.deepEqual(api.seen, []);
  });

  it('limits the wait for the owner while the service is silent', async () => {
    await using api = await service(silence);
    const { approvals } = api.farebox({ timeoutMs: 3_000, maxRetries: 2 });
    const { code } = await raised(approvals.wait('apr_1', { timeoutMs: 3_000 }));
    assert.deepEqual([code, api.seen.length], ['service_unavailable', 1]);
  });

  it('may wait for the owner as long as a timer can run', async () => {
    await using api = await service(answer(200, { id: 'apr_1', status: 'approved' }));
    const { status } = await api
      .farebox({ timeoutMs: 2 ** 31 - 1 })
      .approvals.wait('apr_1', { timeoutMs: 2 ** 31 - 1 });
    assert.equal(status, 'approved');
  });
});
