/** What the developer is told of paid calls whose callers cannot act upon what went wrong, or that nobody paid for. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Farebox, type FareboxError, type FareboxOptions } from '@farebox/client';
import * as forFetch from '@farebox/client/fetch';
import { paidTool } from '@farebox/client/mcp';
import type { PaidOptions } from '../../client/paid.js';
import { until } from '../support/stack.ts';
import { ScriptedService, answer, droppedLine, refusal, type Step } from './scripted-service.ts';

const run = promisify(execFile);
const held = answer(201, { id: 'hld_1', status: 'open' });
const away = refusal(503, 'service_unavailable');
const captured = answer(201, { id: 'chg_1', receipt: 'hmac_sha256.1.e30.c2ln', tool: 'search' });

type Options = PaidOptions<[], { content: never[] }>;
type Told = [FareboxError, { tool: string }];

/** Makes one paid call, and gives what `onError` got. */
async function toldOf(
  script: [Step, ...Step[]],
  options: Partial<Options>,
  settings: FareboxOptions<'fail' | 'run_unpaid'> = {},
  signal?: AbortSignal,
): Promise<Told[]> {
  await using api = await ScriptedService.start(...script);
  const told: Told[] = [];
  const farebox = new Farebox({
    secretKey: 'fare_sk_live_x',
    baseUrl: api.url,
    maxRetries: 0,
    onError: (...each) => told.push(each),
    ...settings,
  });
  const all: Partial<Options> = { tool: 'search', ...options };
  const tool = paidTool(farebox, all as Options, async () => ({ content: [] })) as (
    ...input: object[]
  ) => Promise<unknown>;
  const headers = new Headers({ 'x-service-key': 'fare_ck_live_x' });
  await tool({}, { requestInfo: { headers }, signal });
  return told;
}

const CASES: Readonly<
  Record<string, [script: [Step, ...Step[]], options: object, told: object, settings?: object]>
> = {
  'a settle() that returns no amount': [
    [held],
    { max: 1, settle: () => NaN },
    { code: 'invalid_amount', outcome: 'not_charged' },
  ],
  'a price() that cannot be charged': [
    [held],
    { price: () => 3 * 0.07 },
    { code: 'invalid_amount', outcome: 'not_charged' },
  ],
  'a wrong secret key': [
    [refusal(401, 'invalid_secret_key')],
    { price: 1 },
    { code: 'invalid_secret_key', outcome: 'not_held', requestId: 'req_1' },
  ],
  'a capture whose answers are all lost': [
    [held, droppedLine],
    { price: 1 },
    { code: 'service_unavailable', outcome: 'unknown', holdId: 'hld_1' },
  ],
  'a call that runs without a hold': [
    [away],
    { price: 1 },
    { code: 'service_unavailable', outcome: 'not_held' },
    { onUnavailable: 'run_unpaid' },
  ],
  'a result that could not be paid for': [
    [held, away],
    { price: 1 },
    { code: 'service_unavailable', outcome: 'not_charged' },
    { onUnavailable: 'run_unpaid' },
  ],
};

describe('client: the developer of a paid call', () => {
  for (const [what, [script, options, expected, settings]] of Object.entries(CASES)) {
    it(`is told of ${what}`, async () => {
      const told = await toldOf(script, options, settings);
      assert.equal(told.length, 1);
      const [error, call] = told[0] ?? assert.fail();
      assert.partialDeepStrictEqual(error.toJSON(), expected);
      assert.deepEqual(call, { tool: 'search' });
    });
  }

  it('is told of a charge that was not refunded though its caller had left', async () => {
    const user = new AbortController();
    const leaving: Step = (...asked) => {
      user.abort();
      captured(...asked);
    };
    const script: [Step, ...Step[]] = [
      held,
      (response, request) =>
        (request.path?.endsWith('/capture') ? leaving : away)(response, request),
    ];
    const told = await toldOf([...script], { price: 1 }, {}, user.signal);
    assert.equal(told.length, 1);
    assert.partialDeepStrictEqual(told[0]?.[0].toJSON(), {
      outcome: 'not_refunded',
      chargeId: 'chg_1',
    });
  });

  it('is not told of what its caller can act upon', async () => {
    for (const script of [
      [refusal(402, 'insufficient_balance', { balance: 0, required: 1 })],
      [away],
    ] satisfies [Step][]) {
      assert.deepEqual(await toldOf(script, { price: 1 }), []);
    }
  });

  it('is not told of the errors of its own code', async () => {
    await using api = await ScriptedService.start(held);
    const told: unknown[] = [];
    const farebox = new Farebox({
      secretKey: 'fare_sk_live_x',
      baseUrl: api.url,
      onError: (error) => told.push(error),
    });
    const route = forFetch.paidRoute(farebox, { tool: 'search', price: 1 }, () => {
      throw new Error('the disk is full');
    });
    await assert.rejects(
      route(new Request('http://x/', { headers: { 'x-service-key': 'fare_ck_live_x' } })),
      /the disk is full/,
    );
    assert.deepEqual(told, []);
  });

  for (const [how, onError] of [
    ['throws', () => assert.fail('the log is full')],
    ['rejects', () => Promise.reject(new Error('the log is full'))],
  ] as const) {
    it(`gets a warning, and the caller its answer, when onError ${how}`, async () => {
      const warnings: string[] = [];
      const note = ({ name, message }: Error) => warnings.push(`${name}: ${message}`);
      process.on('warning', note);
      try {
        await toldOf([refusal(401, 'invalid_secret_key')], { price: 1 }, { onError });
        await until(() => warnings.some((each) => /onError .*the log is full/s.test(each)));
      } finally {
        process.off('warning', note);
      }
    });
  }

  it('is refused an onError that is no function', () => {
    const options = { secretKey: 'fare_sk_live_x', baseUrl: 'http://127.0.0.1:9', onError: 'log' };
    assert.throws(() => new Farebox(options as never), TypeError);
  });
});

/** Each mistake twice; in a process of its own, because one warns once a minute. */
const MISTAKES = `
  import { FakeFarebox } from '@farebox/client/testing';
  import { paidTool } from '@farebox/client/mcp';
  const fake = new FakeFarebox();
  const { apiKey } = fake.addConsumer({ balance: 9 });
  const lost = async (url, init) => {
    if (/capture|release/.test(url)) throw new Error('the line is cut');
    return fake.fetch(url, init);
  };
  const away = async () => { throw new Error('the line is cut'); };
  const tools = [
    [{}, { max: 1, settle: () => NaN }],
    [{ secretKey: 'fare_sk_test_wrong' }, { price: 1 }],
    [{ fetch: lost }, { price: 1 }],
    [{}, { tool: 'other', max: 1, settle: () => 'a result '.repeat(10_000) }],
    [{ fetch: away, onUnavailable: 'run_unpaid' }, { price: 1 }],
  ].map(([settings, options]) =>
    paidTool(fake.farebox(settings), { tool: 'search', ...options }, () => ({ content: [] })));
  if (process.argv[1] === 'worker') delete globalThis.process;
  const headers = new Headers({ 'x-service-key': apiKey });
  for (const tool of [...tools, ...tools]) await tool({}, { requestInfo: { headers } });
`;

describe('client: the developer of a paid call without onError', () => {
  for (const [where, ...args] of [['the process'], ['the console where there is none', 'worker']]) {
    it(`gets one warning of each mistake from ${where}`, async () => {
      const { stderr } = await run(
        process.execPath,
        ['--input-type=module', '-e', MISTAKES, '--', ...args],
        { cwd: import.meta.dirname },
      );
      assert.equal(stderr.match(/FareboxWarning/g)?.length, 5, stderr);
      assert.ok(stderr.length < 5_000, stderr);
      assert.match(stderr, /A call of "other" cannot be billed: settle\(\) returned no amount/);
      assert.match(stderr, /A call of "search" ran unpaid/);
      assert.match(stderr, /A call of "search" cannot be billed: settle\(\) returned no amount/);
      assert.match(stderr, /A call of "search" cannot be billed: Send a secret key/);
      assert.match(stderr, /invalid_secret_key/);
      assert.match(stderr, /outcome not_held, requestId req_/);
      assert.match(stderr, /A call of "search" may have been paid: .*the line is cut/);
      assert.match(stderr, /outcome unknown, idempotencyKey [0-9a-f-]{36}, holdId hld_/);
    });
  }
});
