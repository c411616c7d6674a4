/** Prices by the unit: rate cards of tools, quotes, and what is charged by them. */
import assert from 'node:assert/strict';
import { ChargeBatchReply } from '../../../src/schemas/charge-batches.ts';
import { ChargeReply, ChargesReply, DeveloperChargeReply } from '../../../src/schemas/charges.ts';
import { VerifyReply } from '../../../src/schemas/receipts.ts';
import {
  ChangedToolReply,
  QuoteReply,
  RateCardReply,
  ToolReply,
  ToolsReply,
} from '../../../src/schemas/tools.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { makeBudget, makeKey } from '../../support/budget-requests.ts';
import { keyed } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';
import { CARD, COST, UNITS } from '../../support/rate-cards.ts';
import { until } from '../../support/stack.ts';

/** The receipt of a charge that a batch made. */
function receiptOf(result: object | undefined): string {
  assert.ok(result && 'receipt' in result && typeof result.receipt === 'string');
  return result.receipt;
}

describe('rate cards', () => {
  const api = openTestApi({ servers: 2 });
  let account: TestAccount;
  let toolId: string;

  beforeEach(async () => {
    account = await api.createAccount(10);
    toolId = (await register({ name: 'llm', card: CARD })).id;
  });

  const post = (path: string, body: unknown, headers = {}) =>
    call(api, 'POST', path, { key: account.developerKey, body, headers });
  const register = async (body: unknown) => bodyOf(await post('/v1/tools', body), 201, ToolReply);
  const patch = (body: unknown, id = toolId) =>
    call(api, 'PATCH', `/v1/tools/${id}`, { key: account.developerKey, body });
  const change = async (body: unknown) => bodyOf(await patch(body), 200, ChangedToolReply);
  const asked = (changes = {}, headers = {}) =>
    charge(api, account, { tool: 'llm', amount: undefined, units: UNITS, ...changes }, headers);
  const made = async (changes = {}, headers = {}) =>
    bodyOf(await asked(changes, headers), 201, ChargeReply);
  const quote = async (body: unknown) => bodyOf(await post('/v1/quote', body), 200, QuoteReply);
  const batch = async (charges: readonly object[]) =>
    bodyOf(await post('/v1/charges/batch', { charges }), 200, ChargeBatchReply).results;
  async function verified(receipt: string) {
    const { valid, charge: found } = bodyOf(
      await post('/v1/receipts/verify', { receipt }),
      200,
      VerifyReply,
    );
    assert.ok(valid);
    return found;
  }

  const shown = async () => {
    const path = `/v1/tools/${toolId}`;
    const one = bodyOf(
      await call(api, 'GET', path, { key: account.developerKey }),
      200,
      ChangedToolReply,
    );
    const list = bodyOf(
      await call(api, 'GET', '/v1/tools', { key: account.developerKey }),
      200,
      ToolsReply,
    );
    const { card, cardVersion } = one;
    const [listed] = list.tools;
    assert.deepEqual([listed?.id, listed?.card, listed?.cardVersion], [toolId, card, cardVersion]);
    return { card, cardVersion };
  };
  const get = (version: string, key = account.developerKey) =>
    call(api, 'GET', `/v1/tools/${toolId}/cards/${version}`, { key });

  describe('of a tool', () => {
    it('are returned wherever the tool is, and every change makes a new version', async () => {
      assert.deepEqual(await shown(), { card: CARD, cardVersion: 1 });
      const { card, cardVersion } = await change({ card: { input: '0.000000000001', free: 0 } });
      assert.deepEqual({ card, cardVersion }, { card: { free: 0, input: 1e-12 }, cardVersion: 2 });
      assert.equal((await change({ card: { free: '0.00', input: 1e-12 } })).cardVersion, 2);
      assert.equal((await change({ description: 'An LLM.', price: 0.5 })).cardVersion, 2);
      await change({ card: null });
      assert.deepEqual(await shown(), { card: undefined, cardVersion: undefined });
      await change({ card: CARD });
      assert.deepEqual(await shown(), { card: CARD, cardVersion: 3 });
      const dearer = { ...CARD, input: 0.000003 };
      assert.partialDeepStrictEqual(await change({ card: dearer }), {
        card: dearer,
        cardVersion: 4,
      });
      const { amount, cardVersion: charged } = await made({ units: { input: 1 } });
      assert.deepEqual({ amount, charged }, { amount: 0.000003, charged: 4 });
    });

    it('have versions that differ when they are changed at the same time', async () => {
      const changed = await Promise.all(
        Array.from({ length: 8 }, (_, n) => change({ card: { input: n + 1 } })),
      );
      const versions = changed.map(({ cardVersion }) => cardVersion);
      assert.deepEqual(new Set(versions), new Set([2, 3, 4, 5, 6, 7, 8, 9]));
    });

    it('may be added to a name that was only charged, and is null for other tools', async () => {
      bodyOf(await charge(api, account, { tool: 'noted' }), 201, ChargeReply);
      assert.equal('card' in (await register({ name: 'plain', price: 1 })), false);
      const { card, cardVersion } = await register({ name: 'noted', card: CARD });
      assert.deepEqual({ card, cardVersion }, { card: CARD, cardVersion: 1 });
    });

    it('are refused with the unit that is wrong, and change nothing', async () => {
      await api.changingNothing(async () => {
        for (const price of [-1, 1e-13, 1000.01, '1e-6', '']) {
          assertError(
            await patch({ card: { input: 1, output: price } }),
            400,
            'invalid_amount',
            'card.output',
          );
        }
        for (const card of [
          {},
          [],
          'x',
          1,
          { '': 1 },
          { 'a b': 1 },
          { _a: 1 },
          { ['a'.repeat(41)]: 1 },
        ]) {
          assert.partialDeepStrictEqual((await patch({ card })).body, {
            error: { code: 'invalid_request' },
          });
        }
        const many = Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`u${n}`, 1]));
        assertError(await patch({ card: many }), 400, 'invalid_request', 'card');
      });
      assert.equal((await change({})).cardVersion, 1);
    });

    it('can be looked up by the version that a receipt names, also after a change', async () => {
      await change({ card: { input: 1 } });
      await change({ card: null });
      const { card, cardVersion } = bodyOf(await get('1'), 200, RateCardReply);
      assert.deepEqual({ card, cardVersion }, { card: CARD, cardVersion: 1 });
      assert.deepEqual(bodyOf(await get('2'), 200, RateCardReply).card, { input: 1 });
      for (const none of ['0', '3', '01', '-1', '1.5', 'x', '99999']) {
        assertError(await get(none), 404, 'not_found');
      }
      const { developerKey } = await api.createAccount(0);
      assertError(await get('1', developerKey), 404, 'not_found');
    });

    it('are no more than a thousand of a tool', async () => {
      await api.sql.query(
        `insert into farebox.rate_cards (tool_id, version, units, unit_picos)
         select t.id, n, '{input}', array[n] from farebox.tools t cross join generate_series(2, 1000) n
         where t.id = $1`,
        [uuidOf('tool', toolId)],
      );
      const refused = await patch({ card: { input: 1 }, description: 'changed' });
      assertError(refused, 400, 'invalid_request', 'card');
      const { description, cardVersion } = await change({ card: CARD });
      assert.deepEqual({ description, cardVersion }, { description: '', cardVersion: 1 });
    });

    it('are not made for a tool that cannot be registered', async () => {
      bodyOf(await charge(api, account, { tool: 'noted' }), 201, ChargeReply);
      await api.sql.query(
        `insert into farebox.tools (id, developer_id, name, registered_at)
         select uuidv7(), $1, 'tool ' || n, now() from generate_series(1, 1000) n`,
        [uuidOf('developer', account.developerId)],
      );
      const { tools } = bodyOf(
        await call(api, 'GET', '/v1/tools?name=noted', { key: account.developerKey }),
        200,
        ToolsReply,
      );
      const id = tools[0]?.id ?? '';
      assertError(await patch({ card: CARD }, id), 400, 'too_many_tools');
      const { rows } = await api.sql.query('select from farebox.rate_cards where tool_id = $1', [
        uuidOf('tool', id),
      ]);
      assert.equal(rows.length, 0);
    });

    it('are not of tools of other developers', async () => {
      const other = await api.createAccount(0);
      const answer = await call(api, 'PATCH', `/v1/tools/${toolId}`, {
        key: other.developerKey,
        body: { card: { input: 1 } },
      });
      assertError(answer, 404, 'not_found');
      assert.equal((await change({})).cardVersion, 1);
    });
  });

  describe('in a charge', () => {
    it('take the cost of its units, and state the version in the charge, its receipt and lists', async () => {
      const { id, receipt, amount, cardVersion, balance } = await made();
      assert.deepEqual(
        { amount, cardVersion, balance },
        { amount: COST, cardVersion: 1, balance: 9.9935 },
      );
      assert.partialDeepStrictEqual(await verified(receipt), { id, amount: COST, cardVersion: 1 });
      const key = account.developerKey;
      const found = bodyOf(
        await call(api, 'GET', `/v1/charges/${id}`, { key }),
        200,
        DeveloperChargeReply,
      );
      assert.deepEqual([found.receipt, found.cardVersion], [receipt, 1]);
      const plain = bodyOf(await charge(api, account), 201, ChargeReply);
      const { charges } = bodyOf(await call(api, 'GET', '/v1/charges', { key }), 200, ChargesReply);
      assert.deepEqual(
        charges.map((each) => ({ id: each.id, cardVersion: each.cardVersion })),
        [
          { id: plain.id, cardVersion: undefined },
          { id, cardVersion: 1 },
        ],
      );
    });

    it('is by a spend key too, and counts at its budget', async () => {
      const { id } = await makeBudget(api, account.consumerKey, { limit: 0.01 });
      const { key } = await makeKey(api, account.consumerKey, id);
      const { receipt, cardVersion } = await made({ apiKey: key });
      assert.equal(cardVersion, 1);
      assert.partialDeepStrictEqual(await verified(receipt), { cardVersion: 1 });
      const refused = await asked({ apiKey: key });
      assert.partialDeepStrictEqual(refused.body, {
        error: { code: 'spend_limit_reached', remaining: 0.0035 },
      });
    });

    it('applies a changed card to the next charge, in every process', async () => {
      await made();
      await change({ card: { input: 1 } });
      const units = { input: 2 };
      assert.deepEqual(
        await made({ units }).then(({ amount, cardVersion }) => ({ amount, cardVersion })),
        { amount: 2, cardVersion: 2 },
      );
      const [, second] = api.servers;
      assert.ok(second);
      await until(async () => {
        const answer = await charge(second, account, { tool: 'llm', amount: undefined, units });
        return answer.status === 201 && (answer.body as { cardVersion: number }).cardVersion === 2;
      });
    });

    it('takes a unit that was just added, in every process', async () => {
      const [, second] = api.servers;
      assert.ok(second);
      const there = (units: object) =>
        charge(second, account, { tool: 'llm', amount: undefined, units });
      bodyOf(await there(UNITS), 201, ChargeReply);
      await change({ card: { ...CARD, image: 0.5 } });
      assert.equal(bodyOf(await there({ image: 1 }), 201, ChargeReply).amount, 0.5);
    });

    it('is charged once for its idempotency key, also after the card was changed or removed', async () => {
      const headers = keyed('call-1');
      const first = await made({}, headers);
      await change({ card: { input: 1, output: 1 } });
      const again = await asked({ units: { output: 350, input: 1_200 } }, headers);
      assert.deepEqual(bodyOf(again, 201, ChargeReply), first);
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
      await change({ card: null });
      assert.deepEqual(await made({}, headers), first);
      await change({ archived: true });
      assert.deepEqual(await made({}, headers), first);
      const other = await asked({ units: { input: 1_201, output: 350 } }, headers);
      assertError(other, 422, 'idempotency_key_reused');
      assertError(
        await asked({ units: undefined, amount: COST }, headers),
        422,
        'idempotency_key_reused',
      );
    });

    it('is decided by the exact cost when the balance is short', async () => {
      const { consumerKey: apiKey } = await api.createAccount(0.013);
      assert.equal((await made({ apiKey })).balance, 0.0065);
      const one = { apiKey, tool: 'llm', units: { input: 1 } };
      const results = await batch([{ ...one, units: UNITS }, one]);
      assert.partialDeepStrictEqual(results[0], { status: 201, amount: COST, balance: 0 });
      assert.partialDeepStrictEqual(await verified(receiptOf(results[0])), { cardVersion: 1 });
      const refusal = { error: { code: 'insufficient_balance', required: 0.000002 } };
      assert.partialDeepStrictEqual(results[1], refusal);
      assert.partialDeepStrictEqual((await asked(one)).body, refusal);
    });

    it('is refused with the reason, and takes nothing', async () => {
      await change({ price: 0.5 });
      await register({ name: 'flat', price: 0.5 });
      await register({ name: 'dear', card: { call: 1000 } });
      await api.changingNothing(async () => {
        assertError(await asked({ amount: 1 }), 400, 'invalid_request', 'units');
        assertError(await asked({ tool: 'flat' }), 400, 'invalid_request', 'units');
        assertError(await asked({ units: { image: 1 } }), 400, 'invalid_request', 'units.image');
        assertError(await asked({ units: { input: 0 } }), 400, 'invalid_amount', 'units', {
          required: 0,
        });
        assertError(
          await asked({ tool: 'dear', units: { call: 1001 } }),
          400,
          'invalid_amount',
          'units',
        );
        assertError(await asked({ tool: 'unheard-of' }), 400, 'unknown_tool', 'tool');
        for (const units of [
          {},
          [],
          { input: -1 },
          { input: 1.5 },
          { input: '1' },
          { input: 1e12 + 1 },
          null,
        ]) {
          assert.partialDeepStrictEqual((await asked({ units })).body, {
            error: { code: 'invalid_request' },
          });
        }
      });
      assertError(
        await asked({ tool: 'dear', units: { call: 0 } }),
        400,
        'invalid_amount',
        'units',
        { required: 0 },
      );
      await change({ archived: true });
      assertError(await asked(), 400, 'tool_archived', 'tool');
    });

    it('stands beside charges by amount in a batch, each with its own version', async () => {
      const { consumerKey: apiKey } = account;
      const results = await batch([
        { apiKey, tool: 'llm', units: UNITS },
        { apiKey, tool: 'search', amount: 1 },
        { apiKey, tool: 'llm', units: { image: 1 } },
        { op: 'hold', apiKey, tool: 'llm', units: UNITS },
      ]);
      assert.partialDeepStrictEqual(results, [
        { status: 201, amount: COST, cardVersion: 1 },
        { status: 201, amount: 1 },
        { status: 400, error: { param: 'units.image' } },
        { status: 201, hold: { amount: COST } },
      ]);
      assert.equal('cardVersion' in (results[1] ?? {}), false);
      assert.partialDeepStrictEqual(await verified(receiptOf(results[0])), { cardVersion: 1 });
    });
  });

  describe('in a quote', () => {
    it('cost what a charge takes, by the card or by the price', async () => {
      assert.deepEqual(await quote({ tool: 'llm', units: UNITS }), {
        tool: 'llm',
        amount: COST,
        cardVersion: 1,
      });
      await change({ price: 0.5 });
      assert.deepEqual(await quote({ tool: 'llm' }), {
        tool: 'llm',
        amount: 0.5,
        cardVersion: null,
      });
      assert.equal((await quote({ tool: 'llm', units: { input: 0 } })).amount, 0);
      assert.equal((await quote({ tool: 'llm', units: { input: 1 } })).amount, 0.000002);
    });

    it('are refused as the charge would be', async () => {
      assertError(await post('/v1/quote', { tool: 'llm' }), 400, 'invalid_request', 'units');
      assertError(await post('/v1/quote', { tool: 'none' }), 400, 'unknown_tool', 'tool');
      assertError(
        await post('/v1/quote', { tool: 'llm', units: { image: 1 } }),
        400,
        'invalid_request',
        'units.image',
      );
      assertError(
        await post('/v1/quote', { tool: 'llm', unit: 1 }),
        400,
        'invalid_request',
        'unit',
      );
      const { status } = await call(api, 'POST', '/v1/quote', {
        key: account.consumerKey,
        body: { tool: 'llm' },
      });
      assert.equal(status, 401);
    });
  });
});
