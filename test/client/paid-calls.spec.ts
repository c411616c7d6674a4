/** Paid calls against a service that answers by a script: what they do when its answers are lost or come to nothing. */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { Farebox, type FareboxOptions } from '@farebox/client';
import { paidTool } from '@farebox/client/mcp';
import type { PaidOptions } from '../../client/paid.js';
import { answer, droppedLine, raised, refusal, ScriptedService } from './scripted-service.ts';
import type { Step } from './scripted-service.ts';

interface Result {
  readonly isError?: boolean;
  readonly structuredContent?: { readonly error: Readonly<Record<string, unknown>> };
}

type Options = PaidOptions<[], { content: never[] }>;

const search = { apiKey: 'fare_ck_live_x', tool: 'search', amount: 0.02 };
const poor = refusal(402, 'insufficient_balance', { balance: 0, required: 0.02, shortfall: 0.02 });
const question = answer(200, { id: 'apr_1', status: 'pending' });

/** A function in JavaScript that returns what is no amount. */
const returns = (value: unknown) => () => value as number;

async function service(...script: [Step, ...Step[]]) {
  const scripted = await ScriptedService.start(...script);
  const farebox = (options: FareboxOptions = {}) =>
    new Farebox({ secretKey: 'fare_sk_live_x', baseUrl: scripted.url, maxRetries: 0, ...options });
  return Object.assign(scripted, { farebox });
}

/** A paid tool that counts its runs, and how it is called. */
function toolOf(farebox: Farebox, options: Options) {
  const ran = { times: 0 };
  const tool = paidTool(farebox, options, async () => {
    ran.times += 1;
    return { content: [] };
  }) as unknown as (input: object, context: object) => Promise<Result>;
  const headers = new Headers({ 'x-service-key': search.apiKey });
  return { ran, call: () => tool({}, { requestInfo: { headers } }) };
}

describe('client: paid calls that ask the owner', () => {
  const ask = { timeoutMs: 1 };

  it('do not run unpaid when Farebox goes away after the refusal', async () => {
    await using api = await service(poor, question, droppedLine);
    const options = { tool: 'search', price: '0.02', ask, onUnavailable: 'run_unpaid' } as const;
    const { ran, call } = toolOf(api.farebox(), options);
    const error = (await call()).structuredContent?.error;
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

describe('client: paid calls that are settled', () => {
  const held = answer(201, { id: 'hld_1', status: 'open' });
  const unusable = [undefined, null, NaN, Infinity, -1, '', 'a lot', '-1', '0.0000001', true, {}];

  for (const cost of unusable) {
    it(`release the hold and report an error when the cost is ${inspect(cost)}`, async () => {
      await using api = await service(held, answer(200, { id: 'hld_1' }));
      const options = { tool: 'search', max: 2, settle: returns(cost) };
      const { ran, call } = toolOf(api.farebox(), options);
      const { isError, structuredContent } = await call();
      assert.equal(isError, true);
      assert.partialDeepStrictEqual(structuredContent?.error, {
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

  it('hold nothing when their price is a function that returns nothing', async () => {
    await using api = await service(held);
    const { ran, call } = toolOf(api.farebox(), { tool: 'search', price: returns(undefined) });
    assert.equal((await call()).structuredContent?.error['code'], 'billing_error');
    assert.deepEqual([ran.times, api.seen], [0, []]);
  });
});
