/** How charge() handles each way in which the network or the service can answer. */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import {
  Farebox,
  FareboxError,
  InsufficientBalanceError,
  InvalidApiKeyError,
  ServiceUnavailableError,
  type FareboxOptions,
  type OnUnavailable,
} from '@farebox/client';
import { ERRORS } from '../../src/domain/errors.ts';
import {
  CHARGE,
  ScriptedService,
  answer,
  charged,
  droppedLine,
  raised,
  refusal,
  silence,
  type Step,
} from './scripted-service.ts';

const secretKey = 'fare_sk_live_theDeveloper';
const apiKey = 'fare_ck_live_theConsumer';
const search = { apiKey, tool: 'search', amount: 0.02 };

async function service(...script: [Step, ...Step[]]) {
  const scripted = await ScriptedService.start(...script);
  const farebox = <Mode extends OnUnavailable = 'fail'>(options: FareboxOptions<Mode> = {}) =>
    new Farebox<Mode>({ secretKey, baseUrl: scripted.url, ...options });
  return Object.assign(scripted, { farebox });
}

function assertHas(error: FareboxError, facts: Partial<FareboxError>) {
  for (const name of Object.keys(facts) as (keyof FareboxError)[]) {
    assert.deepEqual(error[name], facts[name], name);
  }
}

describe('client: a charge', () => {
  it('sends the charge and resolves with the receipt', async () => {
    await using api = await service(charged);
    const metadata = { query: 'otters' };
    const charge = await api.farebox().charge({ ...search, metadata });
    assert.deepEqual(charge, { ...CHARGE, paid: true, replayed: false });
    const [request] = api.seen;
    assert.equal(request?.method, 'POST');
    assert.equal(request.path, '/v1/charges');
    assert.equal(request.headers.authorization, `Bearer ${secretKey}`);
    assert.equal(request.headers['content-type'], 'application/json');
    assert.deepEqual(request.body, { ...search, metadata });
  });

  it('keeps the path of the base URL', async () => {
    await using api = await service(charged);
    await api.farebox({ baseUrl: `${api.url}/billing/?x=1` }).charge(search);
    assert.equal(api.seen[0]?.path, '/billing/v1/charges');
  });

  it('omits the amount when none is given, so that the registered price is charged', async () => {
    await using api = await service(charged);
    await api.farebox().charge({ apiKey, tool: 'search' });
    assert.deepEqual(api.seen[0]?.body, { apiKey, tool: 'search' });
  });

  it('has an idempotency key of its own for each call', async () => {
    await using api = await service(charged);
    await api.farebox().charge(search);
    await api.farebox().charge(search);
    assert.match(String(api.keys[0]), /^[0-9a-f-]{36}$/);
    assert.notEqual(api.keys[0], api.keys[1]);
  });

  it('sends the given idempotency key, and says when the charge existed', async () => {
    await using api = await service(answer(201, CHARGE, { 'idempotency-replayed': 'true' }));
    const charge = await api.farebox().charge({ ...search, idempotencyKey: 'job-7' });
    assert.equal(charge.replayed, true);
    assert.deepEqual(api.keys, ['job-7']);
  });
});

describe('client: a refusal', () => {
  it('raises insufficient_balance with everything that the consumer needs to know', async () => {
    const facts = { balance: 0.01, required: 0.02, shortfall: 0.01, topUpUrl: 'http://x/top-up' };
    await using api = await service(refusal(402, 'insufficient_balance', facts));
    const error = await raised(api.farebox().charge(search));
    assert.ok(error instanceof InsufficientBalanceError);
    assertHas(error, {
      name: 'InsufficientBalanceError',
      code: 'insufficient_balance',
      message: 'It is insufficient_balance.',
      outcome: 'not_charged',
      status: 402,
      type: 'a_type',
      requestId: 'req_1',
      ...facts,
    });
    assert.equal(api.seen.length, 1);
  });

  it('raises invalid_api_key when the service does not know the consumer key', async () => {
    await using api = await service(refusal(401, 'invalid_api_key'));
    const error = await raised(api.farebox().charge(search));
    assert.ok(error instanceof InvalidApiKeyError);
    assert.equal(error.code, 'invalid_api_key');
  });

  for (const missing of [undefined, '', null, 7, ['a', 'b']]) {
    it(`raises invalid_api_key for ${inspect(missing)} as a key, even with run_unpaid`, async () => {
      await using api = await service(charged);
      const farebox = api.farebox({ onUnavailable: 'run_unpaid' });
      const error = await raised(farebox.charge({ ...search, apiKey: missing as string }));
      assert.equal(error.code, 'invalid_api_key');
      assert.equal(api.seen.length, 0);
    });
  }

  for (const amount of [NaN, Infinity, true, 1n]) {
    it(`raises invalid_amount for ${inspect(amount)}, which JSON would change`, async () => {
      await using api = await service(charged);
      const error = await raised(api.farebox().charge({ ...search, amount: amount as number }));
      assert.equal(error.code, 'invalid_amount');
      assert.equal(api.seen.length, 0);
    });
  }

  for (const idempotencyKey of ['', ' a', 'é', 'a\r\nx: y', 'x'.repeat(256)]) {
    it(`raises invalid_idempotency_key for ${inspect(idempotencyKey).slice(0, 20)}`, async () => {
      await using api = await service(charged);
      const error = await raised(api.farebox().charge({ ...search, idempotencyKey }));
      assert.equal(error.code, 'invalid_idempotency_key');
      assert.equal(api.seen.length, 0);
    });
  }

  it('passes on any other code, and does not count it as unavailability', async () => {
    await using api = await service(refusal(401, 'invalid_secret_key', { param: 'Authorization' }));
    const farebox = api.farebox({ onUnavailable: 'run_unpaid' });
    const error = await raised(farebox.charge(search));
    assertHas(error, { code: 'invalid_secret_key', param: 'Authorization' });
    assert.equal(api.seen.length, 1);
  });

  it('stays a refusal under run_unpaid', async () => {
    await using api = await service(refusal(402, 'insufficient_balance'));
    const farebox = api.farebox({ onUnavailable: 'run_unpaid' });
    assert.equal((await raised(farebox.charge(search))).code, 'insufficient_balance');
  });

  it('is recognized as a FareboxError by another copy of the package', async () => {
    const copy = (await import(`${import.meta.resolve('@farebox/client')}?copy`)) as {
      Farebox: typeof Farebox;
    };
    const farebox = new copy.Farebox({ secretKey, baseUrl: 'http://127.0.0.1' });
    const error = await raised(farebox.charge({ apiKey: '', tool: 'search' }));
    assert.ok(FareboxError.isInstance(error));
    assert.equal(FareboxError.isInstance(new Error('x')), false);
    assert.equal(FareboxError.isInstance(null), false);
  });
});

describe('client: retries', () => {
  const passing: [string, Step][] = [
    ['503 with Retry-After', refusal(503, 'service_unavailable')],
    ['429', refusal(429, 'rate_limited')],
    ['409', refusal(409, 'idempotency_key_in_use')],
    ['500', refusal(500, 'outcome_unknown')],
    ['a bad gateway', answer(502, '<h1>Bad gateway</h1>')],
    ['a dropped line', droppedLine],
    ['no answer in time', silence],
    ['half an answer', answer(201, '{"id":"chg_1"')],
  ];
  for (const [name, step] of passing) {
    it(`charges after ${name}, with the same idempotency key`, async () => {
      await using api = await service(step, charged);
      // Only silence is cut short: the answer that follows may take as long on a busy machine.
      const options = { timeoutMs: step === silence ? 3_000 : 60_000 };
      const charge = await api.farebox(options).charge(search);
      assert.equal(charge.id, CHARGE.id);
      assert.equal(api.seen.length, 2);
      assert.equal(api.keys[0], api.keys[1]);
      assert.deepEqual(api.seen[0]?.body, api.seen[1]?.body);
    });
  }

  const refusals = Object.entries(ERRORS).filter(
    ([code, [status]]) => status === 409 && code !== 'idempotency_key_in_use',
  );
  for (const [code] of refusals) {
    it(`raises ${code} at once: it is a refusal, though its status is 409`, async () => {
      await using api = await service(refusal(409, code));
      const error = await raised(api.farebox().charge(search));
      assertHas(error, { code, status: 409, outcome: 'not_charged' });
      assert.equal(api.seen.length, 1);
    });
  }

  it('waits as long as Retry-After says', async () => {
    await using api = await service(refusal(503, 'service_unavailable', {}, '1'), charged);
    const start = performance.now();
    await api.farebox().charge(search);
    assert.ok(performance.now() - start >= 1_000);
  });

  for (const [form, retryAfter] of [
    ['in seconds', () => '60'],
    ['as a date', () => new Date(Date.now() + 60_000).toUTCString()],
  ] as const) {
    it(`raises at once when Retry-After ${form} is past the deadline`, async () => {
      await using api = await service(refusal(429, 'rate_limited', {}, retryAfter()));
      const error = await raised(api.farebox().charge(search));
      assertHas(error, { code: 'rate_limited', outcome: 'not_charged' });
      assert.equal(api.seen.length, 1);
    });
  }

  it('ends after maxRetries', async () => {
    await using api = await service(refusal(503, 'service_unavailable'));
    await raised(api.farebox({ maxRetries: 3 }).charge(search));
    assert.equal(api.seen.length, 4);
    await raised(api.farebox({ maxRetries: 0 }).charge(search));
    assert.equal(api.seen.length, 5);
  });

  it('ends when the service never answers', async () => {
    await using api = await service(silence);
    const error = await raised(api.farebox({ timeoutMs: 200 }).charge(search));
    assert.equal(error.outcome, 'unknown');
  });

  it('does not follow a redirect, which would take the key elsewhere', async () => {
    await using elsewhere = await service(charged);
    await using api = await service(answer(307, '', { location: `${elsewhere.url}/v1/charges` }));
    const error = await raised(api.farebox().charge(search));
    assertHas(error, { code: 'service_unavailable', status: 307 });
    assert.equal(elsewhere.seen.length, 0);
  });
});

describe('client: an unavailable service', () => {
  it('raises service_unavailable, not charged, when nothing listens', async () => {
    const api = await service(charged);
    await api.close();
    const error = await raised(api.farebox().charge(search));
    assert.ok(error instanceof ServiceUnavailableError);
    assertHas(error, { code: 'service_unavailable', outcome: 'not_charged' });
    assert.match(error.message, /nothing was charged \(ECONNREFUSED\)/);
    assert.ok(error.cause instanceof Error);
  });

  const outcomes: [string, 'not_charged' | 'unknown', [Step, ...Step[]]][] = [
    ['a full queue', 'not_charged', [refusal(503, 'service_unavailable')]],
    ["a gateway's own 503", 'unknown', [answer(503, 'upstream reset')]],
    ['a lost answer', 'unknown', [droppedLine]],
    ["a lost answer, then a proxy's own 402", 'unknown', [droppedLine, answer(402, '<html>')]],
    ["a lost answer, then a proxy's own 422", 'unknown', [droppedLine, answer(422, '<html>')]],
    ['a lost answer, then a full queue', 'unknown', [droppedLine, refusal(503, 'x')]],
    ['a 500', 'unknown', [refusal(500, 'internal_error')]],
    ['a key that stays in use', 'unknown', [refusal(409, 'idempotency_key_in_use')]],
    ['an answer that is not of Farebox', 'not_charged', [answer(404, '<h1>Not found</h1>')]],
  ];
  for (const [name, outcome, script] of outcomes) {
    it(`reports ${name} as ${outcome}`, async () => {
      await using api = await service(...script);
      const error = await raised(api.farebox().charge(search));
      assertHas(error, { code: 'service_unavailable', outcome });
      assert.equal(error.idempotencyKey, api.keys[0]);
    });
  }

  it('reports not charged when the retry after a lost answer gets 402', async () => {
    await using api = await service(droppedLine, refusal(402, 'insufficient_balance'));
    const error = await raised(api.farebox().charge(search));
    assertHas(error, { code: 'insufficient_balance', outcome: 'not_charged' });
  });

  it('reports a lost charge as unknown when its key is refused afterwards', async () => {
    await using api = await service(droppedLine, refusal(401, 'invalid_api_key'));
    const error = await raised(api.farebox().charge(search));
    assertHas(error, { code: 'invalid_api_key', outcome: 'unknown' });
    assert.match(
      error.message,
      /An earlier attempt got no response, so the charge may have been made\.$/,
    );
  });

  it('resolves unpaid under run_unpaid', async () => {
    const api = await service(charged);
    await api.close();
    const farebox = new Farebox({ secretKey, baseUrl: api.url, onUnavailable: 'run_unpaid' });
    const result = await farebox.charge(search);
    assert.ok(!result.paid);
    assert.equal(result.code, 'service_unavailable');
    assert.equal(result.error.outcome, 'not_charged');
  });

  it('lets a single call override the setting', async () => {
    const api = await service(charged);
    await api.close();
    const result = await new Farebox({ secretKey, baseUrl: api.url }).charge({
      ...search,
      onUnavailable: 'run_unpaid',
    });
    assert.equal(result.paid, false);
    const strict = new Farebox({ secretKey, baseUrl: api.url, onUnavailable: 'run_unpaid' });
    await raised(strict.charge({ ...search, onUnavailable: 'fail' }));
  });
});

describe('client: keys', () => {
  it('appear neither in errors nor in the printed client', async () => {
    await using api = await service(
      refusal(402, 'insufficient_balance'),
      refusal(401, 'invalid_api_key'),
      droppedLine,
    );
    const farebox = api.farebox({ maxRetries: 0 });
    const texts = [inspect(farebox, { depth: 9, showHidden: true })];
    for (let i = 0; i < 3; i += 1) {
      texts.push(inspect(await raised(farebox.charge(search)), { depth: 9, showHidden: true }));
    }
    assert.equal(api.seen.length, 3);
    for (const text of texts) assert.doesNotMatch(text, /theDeveloper|theConsumer/);
  });

  it('that no header can carry are refused when the client is created, and not shown', () => {
    assert.throws(
      () => new Farebox({ secretKey: 'fare_sk_live_the\nDeveloper', baseUrl: 'http://x' }),
      (error: Error) => error instanceof TypeError && !error.message.includes('Developer'),
    );
  });

  it('come from the environment by default', async () => {
    await using api = await service(charged);
    const before = { ...process.env };
    Object.assign(process.env, { FAREBOX_SECRET_KEY: secretKey, FAREBOX_URL: api.url });
    try {
      await new Farebox().charge(search);
    } finally {
      delete process.env['FAREBOX_SECRET_KEY'];
      delete process.env['FAREBOX_URL'];
      Object.assign(process.env, before);
    }
    assert.equal(api.seen[0]?.headers.authorization, `Bearer ${secretKey}`);
  });
});

describe('client: settings', () => {
  const wrong: [string, object][] = [
    ['no secret key', { secretKey: '' }],
    ['a base URL that is none', { baseUrl: 'billing' }],
    ['a base URL that is not http', { baseUrl: 'file:///etc' }],
    ['a base URL with the version of the API', { baseUrl: 'https://billing.example/v1' }],
    ['a base URL with the version and a slash', { baseUrl: 'https://billing.example/pay/v1/' }],
    ['a base URL with a password', { baseUrl: 'http://a:b@billing' }],
    ['a time-out of nothing', { timeoutMs: 0 }],
    ['a time-out that no timer can wait', { timeoutMs: 2 ** 31 }],
    ['negative retries', { maxRetries: -1 }],
    ['another onUnavailable', { onUnavailable: 'allow' }],
  ];
  for (const [name, options] of wrong) {
    it(`refuse ${name}`, () => {
      const settings = { secretKey, baseUrl: 'http://127.0.0.1', ...options };
      assert.throws(() => new Farebox(settings), TypeError);
    });
  }

  it('say what to write instead of a base URL with the version of the API', () => {
    const settings = { secretKey, baseUrl: 'https://billing.example/pay/v1/' };
    assert.throws(
      () => new Farebox(settings),
      /write https:\/\/billing\.example\/pay in FAREBOX_URL or baseUrl, without \/v1$/,
    );
  });
});
