/** Many charges in one request: each is answered as if it had been sent alone, in the order of the request. */
import assert from 'node:assert/strict';
import type { Static } from 'typebox';
import { ERRORS, type ErrorCode } from '../../../src/domain/errors.ts';
import { ChargeBatchReply } from '../../../src/schemas/charge-batches.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import {
  assertError,
  assertErrorBody,
  assertShape,
  bodyOf,
  call,
  charge,
  type Answer,
} from '../../support/http.ts';

interface Result {
  readonly status: number;
  readonly id?: string;
  readonly tool?: string;
  readonly balance?: number;
  readonly replayed?: true;
  readonly error?: object;
}

function resultsOf(answer: Answer): readonly Result[] {
  return bodyOf(answer, 200, ChargeBatchReply).results;
}

function assertMember(
  answer: Answer,
  result: Result | undefined,
  code: ErrorCode,
  param?: string,
  facts = {},
): void {
  const { status, ...body } = result ?? { status: 0 };
  assert.equal(status, ERRORS[code][0]);
  assertErrorBody(body, answer.headers.get('x-request-id') ?? '', code, param, facts);
}

describe('POST /v1/charges/batch', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(1_000);
  });
  after(() => api.stop());

  const post = (charges: unknown, headers = {}): Promise<Answer> =>
    call(api, 'POST', '/v1/charges/batch', {
      key: account.developerKey,
      body: { charges },
      headers,
    });
  const member = (changes: object = {}) => ({
    apiKey: account.consumerKey,
    tool: 'search',
    amount: 0.02,
    ...changes,
  });

  it('decides members in the order of the request, and refuses each that is not covered', async () => {
    const consumer = await api.createAccount(1);
    const answer = await post(
      [0.6, 0.5, 0.4, 0.000001].map((amount) => member({ apiKey: consumer.consumerKey, amount })),
    );
    const results = resultsOf(answer);
    assert.deepEqual(
      results.map(({ status, balance }) => [status, balance]),
      [
        [201, 0.4],
        [402, undefined],
        [201, 0],
        [402, undefined],
      ],
    );
    const { status: _, ...charged } = results[0] as Static<typeof ChargeReply> & { status: number };
    assertShape(charged, ChargeReply);
    const facts = {
      developerId: account.developerId,
      tool: 'search',
      balance: 0.4,
      required: 0.5,
      shortfall: 0.1,
      topUpUrl: `${api.url}/top-up`,
    };
    assertMember(answer, results[1], 'insufficient_balance', undefined, facts);
  });

  it('gives each malformed member its own error, and charges the others', async () => {
    const answer = await post([
      member(),
      member({ apiKey: 'x' }),
      member({ amount: 1e-7 }),
      member({ amount: 'one' }),
      member({ tool: '' }),
      member({ tool: 'new', amount: undefined }),
      member({ metadata: { 'nul\0': 1 } }),
      member({ idempotencyKey: '' }),
      member({ idempotencyKey: 1 }),
      null,
      'text',
      [],
      member({ idempotency_key: 'misspelled' }),
      member(),
    ]);
    const results = resultsOf(answer);
    assert.deepEqual([results[0]?.status, results[13]?.status], [201, 201]);
    assertMember(answer, results[12], 'invalid_request', 'idempotency_key');
    assertMember(answer, results[1], 'invalid_api_key', 'apiKey');
    assertMember(answer, results[2], 'invalid_amount', 'amount');
    assertMember(answer, results[3], 'invalid_amount', 'amount');
    assertMember(answer, results[4], 'invalid_request', 'tool');
    assertMember(answer, results[5], 'unknown_tool', 'tool');
    assertMember(answer, results[6], 'invalid_request', 'metadata');
    assertMember(answer, results[7], 'invalid_idempotency_key');
    assertMember(answer, results[8], 'invalid_request', 'idempotencyKey');
    for (const index of [9, 10, 11]) assertMember(answer, results[index], 'invalid_request');
    assert.equal(results.length, 14);
  });

  it('charges the other members when one has an amount 5,000 levels deep', async () => {
    const rawBody = JSON.stringify({ charges: [member({ amount: [] }), member()] });
    const answer = await call(api, 'POST', '/v1/charges/batch', {
      key: account.developerKey,
      rawBody: rawBody.replace('[]', '['.repeat(5_000) + ']'.repeat(5_000)),
    });
    const [refused, charged] = resultsOf(answer);
    assertMember(answer, refused, 'invalid_amount', 'amount');
    assert.equal(charged?.status, 201);
  });

  it('makes one charge for a repeated key, and marks the second member as replayed', async () => {
    const same = member({ idempotencyKey: 'twice' });
    const results = resultsOf(await post([same, member(), same]));
    assert.deepEqual(
      results.map(({ status, replayed }) => [status, replayed]),
      [
        [201, undefined],
        [201, undefined],
        [201, true],
      ],
    );
    const [{ status, ...first }, , { replayed, ...again }] = results as [Result, Result, Result];
    assert.deepEqual(again, { status, ...first });
    assert.ok(replayed);
  });

  it('shares its keys with single charges', async () => {
    const single = await charge(api, account, {}, { 'idempotency-key': 'shared' });
    const { id } = bodyOf(single, 201, ChargeReply);
    const answer = await post([
      member({ idempotencyKey: 'shared' }),
      member({ idempotencyKey: 'shared', amount: 0.03 }),
    ]);
    const [replayed, reused] = resultsOf(answer);
    assert.deepEqual([replayed?.id, replayed?.replayed], [id, true]);
    assertMember(answer, reused, 'idempotency_key_reused');
  });

  it('accepts a thousand charges', async () => {
    const consumer = await api.createAccount(0.5);
    // Not ASCII, because the reply's length is in bytes, not characters.
    const tool = 'Übersetzung';
    const one = member({ apiKey: consumer.consumerKey, amount: 0.001, tool });
    const results = resultsOf(await post(Array.from({ length: 1_000 }, () => one)));
    assert.deepEqual(
      results.map(({ status }) => status),
      Array.from({ length: 1_000 }, (_, n) => (n < 500 ? 201 : 402)),
    );
    assert.ok(results.slice(0, 500).every((result) => result.tool === tool));
  });

  const malformed: Readonly<Record<string, unknown>> = {
    'no charges': undefined,
    'an empty list': [],
    'an object': {},
    'a thousand and one': Array.from({ length: 1_001 }, () => 1),
  };
  for (const [what, charges] of Object.entries(malformed)) {
    it(`refuses ${what}`, async () => {
      const answer = await api.changingNothing(() => post(charges));
      assertError(answer, 400, 'invalid_request', 'charges');
    });
  }

  it('refuses a key for the whole batch', async () => {
    const answer = await api.changingNothing(() => post([member()], { 'idempotency-key': 'k' }));
    assertError(answer, 400, 'invalid_idempotency_key');
  });

  it('refuses a body larger than a megabyte', async () => {
    const large = member({ metadata: { a: 'v'.repeat(500) }, extra: 'x'.repeat(1024 * 1024) });
    const answer = await api.changingNothing(() => post([large]));
    assertError(answer, 413, 'payload_too_large');
  });
});
