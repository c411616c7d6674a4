/** Concurrent calls share requests, and each still has its own key, answer, error and deadline. */
import assert from 'node:assert/strict';
import { setImmediate as turnOfEventLoop } from 'node:timers/promises';
import { Farebox, type FareboxError, type Charge, type FareboxOptions } from '@farebox/client';
import { until } from '../support/stack.ts';
import {
  CHARGE,
  ScriptedService,
  answer,
  decide,
  droppedLine,
  made,
  raised,
  refusal,
  silence,
  type Decision,
  type SeenCharge,
  type Step,
} from './scripted-service.ts';

/** As in client/coalescer.js. */
const REQUESTS_MAX = 2;
const BATCH_MAX = 1_000;
const BODY_BYTES_MAX = 1024 * 1024;

const makeAll = decide(made);

async function service(...script: [Step, ...Step[]]) {
  const scripted = await ScriptedService.start(...script);
  const farebox = (options: FareboxOptions = {}) =>
    new Farebox({ secretKey: 'fare_sk_live_x', baseUrl: scripted.url, ...options });
  return Object.assign(scripted, { farebox });
}

function request(idempotencyKey: string, more: object = {}) {
  return { apiKey: 'fare_ck_live_x', tool: 'search', amount: 0.02, idempotencyKey, ...more };
}

function chargeAll(farebox: Farebox, keys: readonly string[], more?: object) {
  return keys.map((key) => farebox.charge(request(key, more)));
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `key-${n}`);
}

/** As many calls as there may be requests at once, each in a request of its own. */
async function callsInFlight(
  { seen }: Pick<ScriptedService, 'seen'>,
  farebox: Farebox,
): Promise<Promise<Charge>[]> {
  const calls: Promise<Charge>[] = [];
  for (const key of names(REQUESTS_MAX)) {
    calls.push(...chargeAll(farebox, [key]));
    await until(() => seen.length === calls.length);
  }
  return calls;
}

function keysOf(charges: readonly SeenCharge[] | undefined): string[] {
  return (charges ?? []).map(({ idempotencyKey }) => idempotencyKey);
}

/** A step that answers when the test tells it to. */
function held(step: Step): { step: Step; release: () => void } {
  const waiting: (() => void)[] = [];
  return {
    step: (...asked) => void waiting.push(() => step(...asked)),
    release: () => waiting.splice(0).forEach((go) => go()),
  };
}

function error(code: string) {
  return { error: { code, message: `It is ${code}.`, type: 'a_type' } };
}

type Settled = PromiseSettledResult<Charge> | undefined;

function valueOf(settled: Settled): Charge {
  assert.equal(settled?.status, 'fulfilled');
  return settled.value;
}

function reasonOf(settled: Settled): FareboxError {
  assert.equal(settled?.status, 'rejected');
  return settled.reason as FareboxError;
}

describe('client: a batch', () => {
  it('does not take `ask`, which it would ignore', async () => {
    await using api = await service(answer(200, { results: [{ status: 201 }] }));
    const { apiKey, tool } = request('');
    // @ts-expect-error: a batch does not wait for an owner.
    assert.equal((await api.farebox().batch([{ apiKey, tool, ask: true }])).length, 1);
  });

  it('names the keys of its members in the error when its answer is lost', async () => {
    const results = [{ status: 201 }, { status: 201 }, { status: 200 }];
    await using api = await service(droppedLine, answer(200, { results }));
    const farebox = api.farebox({ maxRetries: 0 });
    const { apiKey, tool, amount } = request('');
    const members = [
      { apiKey, tool, amount },
      { op: 'hold', apiKey, tool, amount, idempotencyKey: 'mine' },
      { op: 'release', holdId: 'hld_1' },
    ] as const;
    const lost = await raised(farebox.batch(members));
    assert.equal(lost.outcome, 'unknown');
    const keys = lost.idempotencyKeys ?? assert.fail('no keys');
    assert.match(keys[0] ?? '', /^[0-9a-f-]{36}$/);
    assert.deepEqual(keys.slice(1), ['mine', undefined]);
    const again = members.map((member, n) => ({ ...member, idempotencyKey: keys[n] }));
    await farebox.batch(again);
    assert.deepEqual(api.seen[1]?.body, api.seen[0]?.body);
    const refused = await raised(farebox.batch([{ apiKey, tool, amount: Number.NaN }]));
    assert.equal(refused.idempotencyKeys, undefined);
  });

  it('names the key of each member that failed, which may have been done all the same', async () => {
    const results = [
      { status: 201, id: 'chg_1' },
      { status: 500, ...error('outcome_unknown') },
      { status: 409, ...error('hold_closed') },
    ];
    await using api = await service(answer(200, { results }), answer(200, { results }));
    const farebox = api.farebox();
    const { apiKey, tool, amount } = request('');
    const made = { apiKey, tool, amount };
    const [first, second, third] = await farebox.batch([
      made,
      made,
      { op: 'release', holdId: 'hld_1' },
    ]);
    const [sent = assert.fail('nothing came')] = api.seen;
    const { charges } = sent.body as { charges: { idempotencyKey: string }[] };
    const keys = [first, second, third].map((result) => result?.idempotencyKey);
    assert.deepEqual(keys, [undefined, charges[1]?.idempotencyKey, undefined]);
    assert.deepEqual(
      { ...second, idempotencyKey: undefined },
      { ...results[1], idempotencyKey: undefined },
    );
    const lost = await raised(farebox.batch([made]));
    assert.deepEqual([lost.outcome, lost.idempotencyKeys?.length], ['unknown', 1]);
  });
});

describe('client: concurrent charges', () => {
  it('go in one request when called together, and alone when alone', async () => {
    await using api = await service(makeAll);
    const farebox = api.farebox();
    await farebox.charge(request('alone'));
    const charges = await Promise.all(chargeAll(farebox, names(3)));
    assert.deepEqual(
      charges.map(({ id }) => id),
      ['chg_key-0', 'chg_key-1', 'chg_key-2'],
    );
    assert.deepEqual(
      api.seen.map(({ path }) => path),
      ['/v1/charges', '/v1/charges/batch'],
    );
    assert.deepEqual(api.seen[1]?.body, { charges: names(3).map((key) => request(key)) });
    assert.equal(api.seen[1].headers['idempotency-key'], undefined);
  });

  it('are spread evenly over several requests when there are many', async () => {
    await using api = await service(makeAll);
    const keys = names(101);
    await Promise.all(chargeAll(api.farebox(), keys));
    // They come on two connections, in any order.
    const sent = api.charges.map(keysOf).toSorted((a, b) => b.length - a.length);
    assert.deepEqual(
      sent.map(({ length }) => length),
      [51, 50],
    );
    assert.deepEqual(sent.flat(), keys);
  });

  it('wait while requests are in flight, and share the next one', async () => {
    const gate = held(makeAll);
    await using api = await service(gate.step);
    const farebox = api.farebox();
    const calls = await callsInFlight(api, farebox);
    calls.push(...chargeAll(farebox, ['late-1']));
    await turnOfEventLoop();
    calls.push(...chargeAll(farebox, ['late-2']));
    gate.release();
    await until(() => api.seen.length > REQUESTS_MAX);
    assert.deepEqual(keysOf(api.charges[REQUESTS_MAX]), ['late-1', 'late-2']);
    gate.release();
    await Promise.all(calls);
    assert.equal(api.seen.length, REQUESTS_MAX + 1);
  });

  it('share a request with none of those that ended before it was sent, however large these are', async () => {
    const gate = held(makeAll);
    await using api = await service(gate.step);
    const farebox = api.farebox();
    const calls = await callsInFlight(api, farebox);
    const given = new AbortController();
    const metadata = Object.fromEntries(names(20).map((name) => [name, 'x'.repeat(500)]));
    const ended = names(50).map((key) =>
      farebox.charge(request(`ended-${key}`, { metadata }), { signal: given.signal }),
    );
    const late = ['late-1', 'late-2', 'late-3'];
    calls.push(...chargeAll(farebox, late));
    given.abort();
    await Promise.allSettled(ended);
    gate.release();
    await until(() => api.seen.length > REQUESTS_MAX);
    assert.deepEqual(keysOf(api.charges[REQUESTS_MAX]), late);
    gate.release();
    await Promise.all(calls);
  });

  it('are not held up by a connection that hangs', async () => {
    const hanging = Array.from({ length: REQUESTS_MAX }, () => silence);
    await using api = await service(...(hanging as [Step]), makeAll);
    const farebox = api.farebox({ timeoutMs: 60_000, maxRetries: 0 });
    const stuck: Promise<unknown>[] = [];
    for (const key of names(REQUESTS_MAX)) {
      stuck.push(...chargeAll(farebox, [key]));
      await until(() => api.seen.length === stuck.length);
    }
    const charge = await farebox.charge(request('behind'));
    assert.equal(charge.id, 'chg_behind');
    await Promise.all([Promise.allSettled(stuck), api.close()]);
  });

  it('share requests of at most a thousand members, each far below the largest body', async () => {
    await using api = await service(makeAll);
    const farebox = api.farebox();
    const all = await Promise.all(chargeAll(farebox, names(2_500)));
    assert.equal(new Set(all.map(({ id }) => id)).size, 2_500);
    const metadata = Object.fromEntries(names(20).map((name) => [name, '€'.repeat(500)]));
    await Promise.all(chargeAll(farebox, names(100), { metadata }));
    for (const { body } of api.seen) {
      const { charges } = body as { charges: unknown[] };
      assert.ok(charges.length <= BATCH_MAX);
      assert.ok(Buffer.byteLength(JSON.stringify(body)) < BODY_BYTES_MAX * 0.8);
    }
    assert.ok(api.seen.length < 10, `${api.seen.length} requests`);
  });

  it('may have the longest possible timeouts', async () => {
    await using api = await service(makeAll);
    const farebox = api.farebox({ timeoutMs: 2 ** 31 - 1, maxRetries: 9 });
    await Promise.all(chargeAll(farebox, names(2)));
    assert.equal(api.seen.length, 1);
  });

  it('go alone with coalesce: false', async () => {
    await using api = await service(makeAll);
    await Promise.all(chargeAll(api.farebox({ coalesce: false }), names(3)));
    assert.deepEqual(
      api.seen.map(({ path }) => path),
      ['/v1/charges', '/v1/charges', '/v1/charges'],
    );
    assert.throws(() => api.farebox({ coalesce: 'no' as never }), TypeError);
  });

  it('share a request also when they have the same key', async () => {
    await using api = await service(makeAll);
    const charges = await Promise.all(chargeAll(api.farebox(), ['job', 'job']));
    assert.deepEqual(charges[0], charges[1]);
  });

  it('are unaffected by one that JSON cannot represent', async () => {
    await using api = await service(makeAll);
    const farebox = api.farebox();
    const metadata: Record<string, never> = {};
    Object.assign(metadata, { itself: metadata });
    const bad = farebox.charge(request('bad', { metadata }));
    const good = chargeAll(farebox, names(2));
    await assert.rejects(bad, TypeError);
    assert.equal((await Promise.all(good)).length, 2);
    assert.deepEqual(api.charges.map(keysOf), [names(2)]);
  });
});

describe('client: the answers to charges that shared a request', () => {
  it('are their own: a refusal does not affect the others', async () => {
    const decided: Record<string, (charge: SeenCharge) => Decision> = {
      poor: () => ({ status: 402, ...error('insufficient_balance') }),
      again: (charge) => ({ ...made(charge), replayed: true }),
      stranger: () => ({ status: 401, ...error('invalid_api_key') }),
    };
    await using api = await service(
      decide((charge) => (decided[charge.idempotencyKey] ?? made)(charge)),
    );
    const keys = ['first', 'poor', 'again', 'stranger', 'last'];
    const [first, poor, again, stranger, last] = await Promise.allSettled(
      chargeAll(api.farebox(), keys),
    );
    const paid = { ...CHARGE, paid: true, replayed: false };
    assert.deepEqual(valueOf(first), { ...paid, id: 'chg_first' });
    assert.deepEqual(valueOf(last), { ...paid, id: 'chg_last' });
    assert.deepEqual(valueOf(again), { ...paid, id: 'chg_again', replayed: true });
    const { code, status, outcome, idempotencyKey } = reasonOf(poor);
    assert.deepEqual(
      [code, status, outcome, idempotencyKey],
      ['insufficient_balance', 402, 'not_charged', 'poor'],
    );
    assert.equal(reasonOf(stranger).code, 'invalid_api_key');
    assert.equal(api.seen.length, 1);
  });

  it('may be retried one by one, each with its own key', async () => {
    const seen = new Set<string>();
    await using api = await service(
      decide((charge) => {
        const isFirst = !seen.has(charge.idempotencyKey);
        seen.add(charge.idempotencyKey);
        return isFirst && charge.idempotencyKey !== 'key-0'
          ? { status: 500, ...error('outcome_unknown') }
          : made(charge);
      }),
    );
    const charges = await Promise.all(chargeAll(api.farebox(), names(4)));
    assert.deepEqual(
      charges.map(({ id }) => id),
      names(4).map((key) => `chg_${key}`),
    );
    const retried = api.charges.slice(1).flatMap(keysOf);
    assert.deepEqual(retried.toSorted(), ['key-1', 'key-2', 'key-3']);
  });

  const lost: [string, Step][] = [
    ['a dropped line', droppedLine],
    ['a 500', refusal(500, 'internal_error')],
    ['a bad gateway', answer(502, '<h1>Bad gateway</h1>')],
    ['no answer in time', silence],
    ['half an answer', answer(200, '{"results":[{"status":201')],
    ['too few results', answer(200, { results: [{ status: 201 }] })],
    ['results that are none', answer(200, { results: [null, null, 7] })],
  ];
  for (const [name, step] of lost) {
    it(`are unknown for each after ${name}, and each is retried with its own key`, async () => {
      await using api = await service(step, makeAll);
      // Only silence is cut short: the answer that follows may take as long on a busy machine.
      const within = (timeoutMs: number) => ({ timeoutMs: step === silence ? timeoutMs : 60_000 });
      const charges = await Promise.all(chargeAll(api.farebox(within(3_000)), names(3)));
      assert.equal(new Set(charges.map(({ id }) => id)).size, 3);
      assert.deepEqual(api.charges.slice(1).flatMap(keysOf).toSorted(), names(3));
      await using lost = await service(step);
      const calls = chargeAll(lost.farebox({ ...within(300), maxRetries: 0 }), names(3)).map(
        raised,
      );
      for (const { outcome, cause } of await Promise.all(calls)) {
        assert.equal(outcome, 'unknown');
        if (step === silence) assert.equal((cause as Error).name, 'TimeoutError');
      }
    });
  }

  it('come after the Retry-After of a request that was refused for now', async () => {
    await using api = await service(refusal(503, 'service_unavailable', {}, '1'), makeAll);
    const start = performance.now();
    await Promise.all(chargeAll(api.farebox(), names(2)));
    assert.ok(performance.now() - start >= 1_000);
  });

  it('come after the wait that the error of each member asks for', async () => {
    const busy = decide(() => {
      const { error: facts } = error('service_unavailable');
      return { status: 503, error: { ...facts, retryAfter: 1 } };
    });
    await using api = await service(busy, makeAll);
    const start = performance.now();
    await Promise.all(chargeAll(api.farebox(), names(2)));
    assert.ok(performance.now() - start >= 1_000);
    await using down = await service(busy);
    const [call] = chargeAll(down.farebox({ maxRetries: 0 }), names(2)).map(raised);
    assert.equal((await call)?.retryAfterMs, 1_000);
  });

  it('are the same refusal for all when the secret key is wrong', async () => {
    await using api = await service(refusal(401, 'invalid_secret_key'));
    const calls = chargeAll(api.farebox(), names(2)).map(raised);
    for (const { code } of await Promise.all(calls)) assert.equal(code, 'invalid_secret_key');
    assert.equal(api.seen.length, 1);
  });

  it('may take longer than those of the client, each by its own timeout', async () => {
    const gate = held(makeAll);
    await using api = await service(gate.step);
    const start = performance.now();
    const charging = api.farebox({ timeoutMs: 50 }).charge(request('long'), { timeoutMs: 60_000 });
    // As long as all attempts of the client's own timeout, with their pauses.
    await until(() => performance.now() - start > 600);
    gate.release();
    assert.equal((await charging).id, 'chg_long');
    assert.equal(api.seen.length, 1);
  });

  it('are retried after their own timeout, even when others of the request wait longer', async () => {
    await using api = await service(silence, makeAll);
    const farebox = api.farebox({ timeoutMs: 60_000 });
    const caller = new AbortController();
    const { signal } = caller;
    const patient = raised(farebox.charge(request('patient'), { signal }));
    const hasty = farebox.charge(request('hasty'), { timeoutMs: 3_000 });
    assert.equal((await hasty).id, 'chg_hasty');
    assert.deepEqual(api.charges.map(keysOf), [['patient', 'hasty'], ['hasty']]);
    caller.abort();
    assert.equal((await patient).outcome, 'unknown');
  });

  it('are not awaited past the deadline, also behind requests that hang', async () => {
    await using api = await service(silence);
    const farebox = api.farebox({ timeoutMs: 3_000, maxRetries: 0 });
    const calls: Promise<FareboxError>[] = [];
    for (const key of names(REQUESTS_MAX)) {
      calls.push(...chargeAll(farebox, [key]).map(raised));
      await until(() => api.seen.length === calls.length, { intervalMs: 1 });
    }
    // Its deadline is before that of the requests, and before they count as stalled.
    calls.push(raised(farebox.charge(request('behind'), { timeoutMs: 300 })));
    for (const error of await Promise.all(calls)) assert.equal(error.code, 'service_unavailable');
  });
});
