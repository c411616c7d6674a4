/** Prices by the unit: one suite, which the service and its fake must pass. */
import assert from 'node:assert/strict';
import { Farebox, usd, type FareboxConsumer } from '@farebox/client';
import { paidRoute } from '@farebox/client/fetch';
import { paidTool } from '@farebox/client/mcp';
import { fakeService, realService } from './grounds.ts';
import { ScriptedService, charged, raised } from './scripted-service.ts';

/** $2.50 and $10.00 per million tokens. */
const CARD = { input: 0.0000025, output: '0.00001', cached: 0 };
const SHOWN = { input: 0.0000025, output: 0.00001, cached: 0 };
const UNITS = { input: 1_200, output: 350 };
/** What they cost: $0.003 and $0.0035. */
const COST = 0.0065;

const handler = () => ({ content: [] });
const answer = async ({ tokens }: { tokens: number }) => ({
  content: [],
  structuredContent: { input: tokens, output: 2 * tokens },
});
const told = (args: { tokens: number }, _extra: object) => answer(args);
const paidBy = (units: unknown) => ({ tool: 'llm', price: { units: units as never } });

const whatRefuses = async (asked: Promise<unknown>) => {
  const { code, param, outcome } = await raised(asked);
  return [code, param, outcome === 'unknown'];
};

for (const [name, service] of Object.entries({ service: realService(), fake: fakeService() })) {
  describe(`client: rate cards of the ${name}`, () => {
    let farebox: Farebox;
    let consumer: FareboxConsumer;
    let apiKey: string;
    let toolId: string;

    before(() => service.start());
    beforeEach(async () => {
      ({ farebox, consumer, apiKey } = await service.open());
      ({ id: toolId } = await farebox.tools.create({ name: 'llm', card: CARD }));
    });
    after(() => service.stop());

    const balance = async () => (await consumer.balance()).balance;
    const charge = (changes: object = {}) =>
      farebox.charge({ apiKey, tool: 'llm', units: UNITS, ...changes });
    const hold = (changes: object = {}) =>
      farebox.holds.place({
        apiKey,
        tool: 'llm',
        units: { input: 4_000, output: 1_000 },
        ...changes,
      });
    /** A card with one unit. */
    const priced = async (price: number | string, unit = 'unit') => {
      await farebox.tools.update(toolId, { card: { [unit]: price } });
    };

    it('are set, listed, changed by version, and removed', async () => {
      const shown = { name: 'llm', price: null, card: SHOWN, cardVersion: 1 };
      assert.partialDeepStrictEqual(await farebox.tools.get(toolId), shown);
      assert.partialDeepStrictEqual((await farebox.tools.list().page()).tools, [shown]);
      const same = { cached: '0', output: '0.000010', input: usd('2.50').per(1_000_000) };
      assert.equal((await farebox.tools.update(toolId, { card: same })).cardVersion, 1);
      const changed = await farebox.tools.update(toolId, { card: { input: '0.000000000001' } });
      assert.deepEqual([changed.card, changed.cardVersion], [{ input: 1e-12 }, 2]);
      const without = await farebox.tools.update(toolId, { card: null, price: 1 });
      assert.deepEqual(
        [without.price, without.card, without.cardVersion],
        [1, undefined, undefined],
      );
      assert.equal((await farebox.tools.update(toolId, { card: CARD })).cardVersion, 3);
      assert.equal((await farebox.tools.update(toolId, { price: 2 })).cardVersion, 3);
      const plain = await farebox.tools.create({ name: 'plain' });
      for (const [version, card] of [
        [1, SHOWN],
        [2, { input: 1e-12 }],
        [3, SHOWN],
      ] as const) {
        const { createdAt, ...found } = await farebox.tools.getCard(toolId, version);
        assert.deepEqual(found, { card, cardVersion: version });
        assert.ok(Date.parse(createdAt) <= Date.now(), createdAt);
      }
      for (const [id, version] of [
        [toolId, 4],
        [toolId, 0],
        [plain.id, 1],
        [`tool_${'0'.repeat(32)}`, 1],
      ] as const) {
        assert.equal((await raised(farebox.tools.getCard(id, version))).code, 'not_found');
      }
      assert.deepEqual([plain.card, plain.cardVersion], [undefined, undefined]);
    });

    it('price a charge, whose receipt names the version', async () => {
      const made = await charge({ idempotencyKey: 'job', metadata: { n: 1 } });
      assert.partialDeepStrictEqual(made, { amount: COST, cardVersion: 1, tool: 'llm' });
      assert.equal(await balance(), 10 - COST);
      const check = await farebox.verifyReceipt(made.receipt);
      assert.partialDeepStrictEqual(check.charge, { id: made.id, amount: COST, cardVersion: 1 });
      assert.equal((await farebox.charges.get(made.id)).cardVersion, 1);
      assert.equal((await consumer.charges.list().page()).charges[0]?.cardVersion, 1);
      const plain = await charge({ units: undefined, amount: 1 });
      assert.ok(!('cardVersion' in plain));
      assert.ok(!('cardVersion' in ((await farebox.verifyReceipt(plain.receipt)).charge ?? {})));
      assert.ok(!('cardVersion' in (await farebox.charges.get(plain.id))));
    });

    it('price a charge once, by the key of which another one is refused', async () => {
      const made = await charge({ idempotencyKey: 'job' });
      await farebox.tools.update(toolId, { card: { input: 1, output: 1 } });
      const reordered = { output: 350, input: 1_200 };
      const again = await charge({ idempotencyKey: 'job', units: reordered });
      assert.deepEqual(again, { ...made, replayed: true });
      await farebox.tools.update(toolId, { card: null });
      assert.equal((await charge({ idempotencyKey: 'job' })).replayed, true);
      for (const other of [
        { units: { input: 1_200, output: 351 } },
        { units: undefined, amount: COST },
        { amount: COST },
      ]) {
        const error = await raised(charge({ idempotencyKey: 'job', ...other }));
        assert.equal(error.code, 'idempotency_key_reused');
      }
      assert.equal(await balance(), 10 - COST);
    });

    for (const [price, count, micros] of [
      ['0.0000005', 1, 1],
      ['0.0000005', 3, 2],
      ['0.0000005', 5, 2],
      ['0.0000005', 7, 4],
      ['0.000000500001', 5, 3],
      ['0.000000499999', 5, 2],
      ['0.000000000001', 1, 1],
      ['0.000000000001', 1_000_000_000_000, 1_000_000],
      ['0.000000000001', 1_500_000, 2],
      [3e-7, 10, 3],
      [1e-12, 2_500_000, 2],
    ] as const) {
      it(`round ${count} units of $${price} to ${micros} micro-dollars`, async () => {
        await priced(price);
        const units = { unit: count };
        const quoted = await farebox.quote({ tool: 'llm', units });
        assert.deepEqual(quoted, { tool: 'llm', amount: micros / 1e6, cardVersion: 2 });
        assert.equal((await charge({ units })).amount, micros / 1e6);
      });
    }

    for (const micros of [990_401, 990_402, 990_403, 990_429, 990_500, 990_503, 990_504]) {
      it(`trigger no response by a cost of ${micros} micro-dollars`, async () => {
        await priced('0.000001');
        const units = { unit: micros };
        const amount = micros / 1e6;
        assert.equal((await charge({ units })).amount, amount);
        assert.equal((await hold({ units })).amount, amount);
        const asked = { apiKey, tool: 'llm', units };
        assert.partialDeepStrictEqual(await farebox.batch([asked, { op: 'hold', ...asked }]), [
          { status: 201, amount },
          { status: 201, hold: { amount } },
        ]);
      });
    }

    it('price a hold, and its capture by the same card', async () => {
      const held = await hold();
      assert.deepEqual([held.amount, held.balance], [0.02, 9.98]);
      assert.ok(!('cardVersion' in held));
      await farebox.tools.update(toolId, { card: { input: 0.00001, output: 0.00001 } });
      const asked = { holdId: held.id, units: { input: 100 }, idempotencyKey: 'once' };
      const captured = await farebox.holds.capture(asked);
      assert.partialDeepStrictEqual(captured, {
        amount: 0.00025,
        cardVersion: 1,
        balance: 9.99975,
      });
      assert.equal((await farebox.verifyReceipt(captured.receipt)).charge?.cardVersion, 1);
      await farebox.tools.update(toolId, { card: null });
      assert.deepEqual(await farebox.holds.capture(asked), { ...captured, replayed: true });
      const reused = { ...asked, units: { input: 101 } };
      assert.equal((await raised(farebox.holds.capture(reused))).code, 'idempotency_key_reused');
    });

    it('price the capture of a hold of an amount by the card that the tool then has', async () => {
      const { id: early } = await farebox.tools.create({ name: 'early' });
      const asked = { apiKey, tool: 'early', amount: 1 };
      const units = { input: 100 };
      const holds = await Promise.all(Array.from({ length: 4 }, () => farebox.holds.place(asked)));
      const [first, second, third, fourth] = holds.map(({ id }) => id);
      const capture = (holdId = '', changes: object = { units }) =>
        farebox.holds.capture({ holdId, ...changes });
      assert.deepEqual(await whatRefuses(capture(first)), ['invalid_request', 'units', false]);
      await farebox.tools.update(early, { card: CARD });
      assert.partialDeepStrictEqual(await capture(first), { amount: 0.00025, cardVersion: 1 });
      await farebox.tools.update(early, { card: { input: 0.00001 } });
      const again = { units, idempotencyKey: 'once' };
      const captured = await capture(second, again);
      assert.partialDeepStrictEqual(captured, { amount: 0.001, cardVersion: 2 });
      await farebox.tools.update(early, { archived: true });
      assert.deepEqual(await whatRefuses(capture(third)), ['tool_archived', 'tool', false]);
      await farebox.tools.update(early, { archived: false, card: null });
      assert.deepEqual(await whatRefuses(capture(third)), ['invalid_request', 'units', false]);
      assert.deepEqual(await capture(second, again), { ...captured, replayed: true });
      assert.equal((await capture(third, { amount: 0.5 })).amount, 0.5);
      assert.equal((await capture(fourth, {})).amount, 1);
    });

    it('capture a hold of units by its card when the tool has another one, none or is archived', async () => {
      const holds = [await hold(), await hold(), await hold()];
      const changes = [{ card: { pages: 1 } }, { card: null }, { archived: true }];
      for (const [n, change] of changes.entries()) {
        await farebox.tools.update(toolId, change);
        const { id: holdId } = holds[n] ?? assert.fail();
        const captured = await farebox.holds.capture({ holdId, units: UNITS });
        assert.partialDeepStrictEqual(captured, { amount: COST, cardVersion: 1 });
      }
    });

    it('capture what is held, at most or beyond, as amounts do', async () => {
      const units = { input: 8_000, output: 2_000 };
      const { id: holdId } = await hold();
      const error = await raised(farebox.holds.capture({ holdId, units }));
      assert.deepEqual([error.code, error.remaining], ['exceeds_hold', 0.02]);
      const capped = await farebox.holds.capture({ holdId, units, over: 'cap' });
      assert.deepEqual([capped.amount, capped.cardVersion], [0.02, 1]);
      const { id: second } = await hold();
      const over = await farebox.holds.capture({ holdId: second, units, over: 'overflow' });
      assert.equal(over.amount, 0.04);
      const { id: third } = await hold();
      const all = await farebox.holds.capture({ holdId: third });
      assert.deepEqual([all.amount, 'cardVersion' in all], [0.02, false]);
    });

    it('price the members of a batch, each by itself', async () => {
      const { id: holdId } = await hold();
      const asked = { apiKey, tool: 'llm' };
      const results = await farebox.batch([
        { ...asked, units: UNITS },
        { ...asked, units: { pages: 1 } },
        { op: 'hold', ...asked, units: { input: 400 } },
        { op: 'capture', holdId, units: { output: 350 } },
        { op: 'capture', holdId, units: { output: 1 }, amount: 1 },
        { ...asked, units: {} },
      ]);
      assert.partialDeepStrictEqual(results, [
        { status: 201, amount: COST, cardVersion: 1 },
        { status: 400, error: { code: 'invalid_request', param: 'units.pages' } },
        { status: 201, hold: { amount: 0.001 } },
        { status: 201, amount: 0.0035, cardVersion: 1 },
        { status: 400, error: { code: 'invalid_request', param: 'units' } },
        { status: 400, error: { code: 'invalid_request', param: 'units' } },
      ]);
    });

    it('quote what a charge would cost, and take nothing', async () => {
      const quote = (units?: Record<string, number>, tool = 'llm') =>
        farebox.quote({ tool, units });
      assert.deepEqual(await quote(UNITS), { tool: 'llm', amount: COST, cardVersion: 1 });
      assert.equal((await quote({ cached: 7 })).amount, 0);
      assert.deepEqual(await whatRefuses(quote()), ['invalid_request', 'units', false]);
      await farebox.tools.update(toolId, { price: 0.25 });
      assert.deepEqual(await quote(), { tool: 'llm', amount: 0.25, cardVersion: null });
      for (const units of [undefined, UNITS]) {
        const asked = quote(units, 'unknown');
        assert.deepEqual(await whatRefuses(asked), ['unknown_tool', 'tool', false]);
      }
      await farebox.tools.update(toolId, { archived: true });
      for (const units of [undefined, UNITS]) {
        assert.deepEqual(await whatRefuses(quote(units)), ['tool_archived', 'tool', false]);
      }
      assert.equal(await balance(), 10);
    });

    it('refuse what they do not price, and charge nothing', async () => {
      await farebox.tools.update(toolId, { card: { ...CARD, dear: 1_000 } });
      const { id: holdId } = await hold();
      const left = await balance();
      const asks = [
        charge,
        hold,
        ({ units, amount }: { units?: never; amount?: number }) =>
          farebox.holds.capture({ holdId, units, amount }),
      ];
      for (const [changes, code, param] of [
        [{ units: { pages: 1 } }, 'invalid_request', 'units.pages'],
        [{ units: { input: 1, constructor: 1 } }, 'invalid_request', 'units.constructor'],
        [{ units: UNITS, amount: 1 }, 'invalid_request', 'units'],
        [{ units: { cached: 5 } }, 'invalid_amount', 'units'],
        [{ units: { input: 0 } }, 'invalid_amount', 'units'],
        [{ units: { dear: 1_001 } }, 'invalid_amount', 'units'],
        [{ units: {} }, 'invalid_request', 'units'],
        [{ units: null }, 'invalid_request', 'units'],
        [{ units: 5 }, 'invalid_request', 'units'],
        [{ units: [1] }, 'invalid_request', 'units'],
        [{ units: { '1st': 1 } }, 'invalid_request', 'units'],
        [{ units: { ['u'.repeat(41)]: 1 } }, 'invalid_request', 'units'],
        [{ units: { input: 1.5 } }, 'invalid_request', 'units.input'],
        [{ units: { input: -1 } }, 'invalid_request', 'units.input'],
        [{ units: { input: '1' } }, 'invalid_request', 'units.input'],
        [{ units: { input: undefined } }, 'invalid_request', 'units.input'],
        [{ units: { input: Number.NaN } }, 'invalid_request', 'units.input'],
        [{ units: { input: 1_000_000_000_001 } }, 'invalid_request', 'units.input'],
      ] as const) {
        for (const ask of asks) {
          const refusal = await whatRefuses(ask(changes as never));
          assert.deepEqual(refusal, [code, param, false], JSON.stringify(changes));
        }
      }
      await farebox.tools.update(toolId, { card: null });
      for (const ask of [charge, hold]) {
        const refusal = await whatRefuses(ask({ units: UNITS }));
        assert.deepEqual(refusal, ['invalid_request', 'units', false]);
      }
      const unknown = { tool: 'unknown' };
      assert.deepEqual(await whatRefuses(charge(unknown)), ['unknown_tool', 'tool', false]);
      assert.deepEqual(await whatRefuses(hold(unknown)), ['unknown_tool', 'tool', false]);
      await farebox.tools.update(toolId, { archived: true });
      assert.deepEqual(await whatRefuses(charge()), ['tool_archived', 'tool', false]);
      assert.equal(await balance(), left);
      assert.equal((await farebox.holds.get(holdId)).status, 'open');
    });

    it('refuse more than the balance with the cost, and need a known hold', async () => {
      const error = await raised(charge({ units: { input: 8_000_000 } }));
      const { code, required, shortfall } = error;
      assert.deepEqual([code, required, shortfall], ['insufficient_balance', 20, 10]);
      const capture = farebox.holds.capture({ holdId: `hld_${'0'.repeat(32)}`, units: UNITS });
      assert.equal((await raised(capture)).code, 'hold_not_found');
    });

    it('take prices from $0 to $1,000 with at most twelve decimals', async () => {
      const named = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`unit_${n}.x-y`, n]));
      const limits = { a: 1_000, ['u'.repeat(40)]: '1000.000000000000', c: 0 };
      for (const card of [named, limits]) await farebox.tools.update(toolId, { card });
      const cards: [card: unknown, code: string, param: string][] = [
        [{}, 'invalid_request', 'card'],
        [7, 'invalid_request', 'card'],
        [[], 'invalid_request', 'card'],
        [{ ...named, more: 1 }, 'invalid_request', 'card'],
        [{ '1st': 1 }, 'invalid_request', 'card'],
        [{ ['u'.repeat(41)]: 1 }, 'invalid_request', 'card'],
        ...[-1, 1_000.01, '1e-6', '0.0000000000001', 1e-13, '', '.5', ' 1', 1e21].map(
          (price): [unknown, string, string] => [{ a: price }, 'invalid_amount', 'card.a'],
        ),
      ];
      for (const [card, code, param] of cards) {
        for (const asked of [
          farebox.tools.update(toolId, { card: card as never }),
          farebox.tools.create({ name: 'other', card: card as never }),
        ]) {
          assert.deepEqual(await whatRefuses(asked), [code, param, false], JSON.stringify(card));
        }
      }
      assert.equal((await farebox.tools.get(toolId)).cardVersion, 3);
    });

    it('price a call of a paid tool: the units of its arguments, or of its result', async () => {
      const requestInfo = { headers: { 'x-service-key': apiKey } };
      const call = async (tool: (...input: never[]) => Promise<object>, args: object) => {
        const { _meta: meta } = (await tool(args as never, { requestInfo } as never)) as {
          _meta?: Record<string, { id: string; amount: number }>;
        };
        return meta?.['farebox/charge'];
      };
      const byArguments = paidTool(
        farebox,
        { tool: 'llm', price: ({ tokens }: { tokens: number }) => ({ units: { input: tokens } }) },
        answer,
      );
      const byResult = paidTool(
        farebox,
        {
          tool: 'llm',
          max: { units: { input: 4_000, output: 1_000 } },
          settle: ({ structuredContent }) => ({ units: structuredContent }),
        },
        answer,
      );
      const known = await call(byArguments, { tokens: 1_000 });
      assert.equal(known?.amount, 0.0025);
      assert.equal((await farebox.charges.get(known.id)).cardVersion, 1);
      assert.equal((await call(byResult, { tokens: 100 }))?.amount, 0.00225);
      assert.equal((await call(byResult, { tokens: 1_000_000 }))?.amount, 0.02);
      for (const tool of [byArguments, byResult]) {
        assert.equal(await call(tool, { tokens: 0 }), undefined);
      }
      assert.equal((await farebox.holds.list({ status: 'open' }).page()).holds.length, 0);
    });

    it('let a paid call whose units cost nothing run for free', async () => {
      const requestInfo = { headers: { 'x-service-key': apiKey } };
      const free = { units: { cached: 300 } };
      for (const options of [
        { tool: 'llm', price: free },
        { tool: 'llm', price: () => free },
        { tool: 'llm', max: { units: { input: 4_000 } }, settle: () => free },
      ]) {
        const paid = paidTool(farebox, options, told);
        const result = await paid({ tokens: 7 }, { requestInfo });
        assert.deepEqual(result, await answer({ tokens: 7 }));
      }
      const request = new Request('http://site/', { headers: { 'x-service-key': apiKey } });
      const options = { tool: 'llm', max: 1, settle: () => free };
      const response = await paidRoute(farebox, options, () => new Response('done'))(request);
      assert.deepEqual([response.status, await response.text()], [200, 'done']);
      assert.equal(response.headers.get('x-charge-id'), null);
      const dear = { units: { input: 1_000_000_000_000 } };
      const beyond = { tool: 'llm', max: { units: UNITS }, settle: () => dear };
      const refused = await paidTool(farebox, beyond, told)({ tokens: 7 }, { requestInfo });
      assert.partialDeepStrictEqual(refused, { isError: true });
      assert.equal(await balance(), 10);
      assert.equal((await farebox.holds.list({ status: 'open' }).page()).holds.length, 0);
    });

    it('price a call of a paid route', async () => {
      const options = { tool: 'llm', price: { units: UNITS } };
      const request = new Request('http://site/', { headers: { 'x-service-key': apiKey } });
      const response = await paidRoute(farebox, options, () => new Response(''))(request);
      const id = response.headers.get('x-charge-id') ?? assert.fail('not paid');
      assert.partialDeepStrictEqual(await farebox.charges.get(id), {
        amount: COST,
        cardVersion: 1,
      });
    });

    it('price a call about which the owner is asked', async () => {
      const { id } = await consumer.budgets.create({ name: 'agent', limit: 0.001 });
      const { key } = await consumer.budgets.createKey(id);
      const ask = { timeoutMs: 60_000 };
      const asked = charge({ apiKey: key, ask });
      let approval: { id: string; amount: number } | undefined;
      while (!approval) [approval] = (await consumer.approvals.list().page()).approvals;
      assert.equal(approval.amount, COST);
      await consumer.approvals.decide(approval.id, { decision: 'once' });
      assert.partialDeepStrictEqual(await asked, { amount: COST, cardVersion: 1 });
    });
  });
}

describe('client: units', () => {
  it('are sent with a charge, alone and together with others', async () => {
    await using api = await ScriptedService.start(charged);
    const request = { apiKey: 'fare_ck_live_x', tool: 'llm', units: UNITS };
    const options = { secretKey: 'fare_sk_live_x', baseUrl: api.url };
    await new Farebox({ ...options, coalesce: false }).charge(request);
    assert.deepEqual(api.seen[0]?.body, request);
    const farebox = new Farebox({ ...options, maxRetries: 0 });
    await Promise.allSettled(Array.from({ length: 40 }, () => farebox.charge(request)));
    assert.partialDeepStrictEqual(api.seen.at(-1)?.body, { charges: [request] });
  });

  it('that are no numbers are named, text in quotes', async () => {
    const farebox = new Farebox({ secretKey: 'fare_sk_live_x', baseUrl: 'http://127.0.0.1:9' });
    for (const [count, text] of [
      ['1200', '"1200"'],
      [undefined, 'undefined'],
    ]) {
      const error = await raised(farebox.quote({ tool: 'llm', units: { input: count } as never }));
      assert.deepEqual(
        [error.code, error.param, error.outcome],
        ['invalid_request', 'units.input', 'not_done'],
      );
      assert.match(error.message, new RegExp(`^units.input is ${text}\\. It must be`));
    }
  });

  it('of a paid call must be whole numbers that charge something', () => {
    const farebox = new Farebox({ secretKey: 'fare_sk_live_x', baseUrl: 'http://127.0.0.1:9' });
    for (const units of [
      {},
      { a: 0 },
      { a: undefined },
      { a: '1' },
      { a: 1.5 },
      { a: -1 },
      { a: 1e13 },
      null,
      'x',
      7,
      [],
      new Map(),
    ]) {
      assert.throws(() => paidTool(farebox, paidBy(units), handler), RangeError);
    }
    const max = { units: { a: 0 } };
    assert.throws(
      () => paidTool(farebox, { tool: 'llm', max, settle: () => 1 }, handler),
      RangeError,
    );
    paidTool(farebox, paidBy({ a: 0, b: 1 }), handler);
  });
});
