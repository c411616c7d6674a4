/** The fake for users' unit tests decides as the service does: one suite, which both must pass. */
import assert from 'node:assert/strict';
import { usd, type Farebox, type FareboxConsumer, type FareboxError } from '@farebox/client';
import { paidRoute } from '@farebox/client/fetch';
import { FakeFarebox } from '@farebox/client/testing';
import { ApiError } from '../../src/domain/errors.ts';
import {
  LATE_MICROS,
  LOST_MICROS,
  MAGIC_REFUSALS,
  MAGIC_TOP_UPS,
} from '../../src/domain/magic-amounts.ts';
import { until } from '../support/stack.ts';
import { fakeService, realService } from './grounds.ts';
import { raised } from './scripted-service.ts';

const told = async (asked: Promise<unknown>) => {
  const { code, status, outcome } = await raised(asked);
  return [code, status, outcome === 'unknown'];
};

/** The codes of refused top-ups whose reason is not the code itself. */
const CODES: Readonly<Record<string, string>> = {
  consent_required: 'consent_required',
  consent_ceiling_reached: 'consent_ceiling_reached',
  declined_too_often: 'declined_too_often',
  too_many_open: 'rate_limited',
  unavailable: 'service_unavailable',
};
const ID = '0'.repeat(32);

const idsOf = async (list: ReturnType<Farebox['holds']['list']>) =>
  (await list.page()).holds.map(({ id }) => id);

const names = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`name ${n}`, n]));

for (const [name, service] of Object.entries({ service: realService(), fake: fakeService() })) {
  describe(`client: what the ${name} decides`, () => {
    let farebox: Farebox;
    let consumer: FareboxConsumer;
    let apiKey: string;
    let consumerId: string;

    before(() => service.start());
    beforeEach(async () => {
      ({ farebox, consumer, apiKey, consumerId } = await service.open());
    });
    after(() => service.stop());

    const balance = async () => (await consumer.balance()).balance;
    const total = async (range: { from?: string; to?: string }) =>
      (await consumer.charges.list({ ...range, tool: 'search' }).page()).total;
    const charge = (changes: object = {}, options?: { signal: AbortSignal }) =>
      farebox.charge({ apiKey, tool: 'search', amount: 1, ...changes }, options);
    const hold = (changes: object = {}, options?: { signal: AbortSignal }) =>
      farebox.holds.place({ apiKey, tool: 'search', amount: 2, ...changes }, options);

    it('does what a batch asks for, in order, each with a result of its own', async () => {
      const [held, other] = [await hold(), await hold({ amount: 7 })];
      const asked = { apiKey, tool: 'search' };
      const results = await farebox.batch([
        { ...asked, amount: 1 },
        { ...asked, amount: usd('0.01') },
        { op: 'release', holdId: other.id, idempotencyKey: 'release' },
        { op: 'capture', holdId: held.id, amount: '0.5', metadata: { n: 1 } },
        { op: 'hold', ...asked, amount: 3, expiresIn: 60 },
        { op: 'capture', holdId: `hld_${ID}` },
        { op: 'capture', holdId: held.id },
      ]);
      assert.partialDeepStrictEqual(results, [
        { status: 201, amount: 1, balance: 0 },
        { status: 402, error: { code: 'insufficient_balance', shortfall: 0.01 } },
        { status: 200, hold: { id: other.id, status: 'released', remaining: 0 } },
        { status: 201, amount: 0.5, balance: 8.5, holdId: held.id, hold: { status: 'captured' } },
        { status: 201, hold: { amount: 3, status: 'open', balance: 5.5 } },
        { status: 404, error: { code: 'hold_not_found' } },
        { status: 409, error: { code: 'hold_closed', status: 'captured' } },
      ]);
      const [first, second] = results.map(({ error }) => error?.code);
      assert.deepEqual([first, second], [undefined, 'insufficient_balance']);
      assert.equal(await balance(), 5.5);
    });

    it('does what a batch asks for once, when it is sent again with its keys', async () => {
      const members = [
        { apiKey, tool: 'search', amount: 1, idempotencyKey: 'a' },
        { op: 'hold' as const, apiKey, tool: 'search', amount: 2, idempotencyKey: 'b' },
      ];
      const [first, again] = [await farebox.batch(members), await farebox.batch(members)];
      assert.deepEqual(
        again,
        first.map((result) => ({ ...result, replayed: true })),
      );
      assert.equal(await balance(), 7);
    });

    it('makes a charge, and shows it to both sides', async () => {
      const made = await charge({ amount: '0.000001', metadata: { job: 7, note: null } });
      assert.partialDeepStrictEqual(made, { amount: 0.000001, tool: 'search', consumerId });
      assert.deepEqual([made.paid, made.replayed, made.balance], [true, false, 9.999999]);
      const { id, receipt, developerId, createdAt } = made;
      const listed = { id, tool: 'search', amount: 0.000001, developerId, receipt, createdAt };
      const seen = { ...listed, refunded: 0, consumerId, metadata: { job: 7, note: null } };
      assert.deepEqual(await farebox.charges.get(id), seen);
      assert.deepEqual((await farebox.charges.list({ tool: 'search' }).page()).charges, [seen]);
      assert.deepEqual((await farebox.charges.list({ tool: 'other' }).page()).charges, []);
      const usage = await consumer.charges.list().page();
      assert.deepEqual(usage.charges, [{ ...listed, refunded: 0 }]);
      assert.deepEqual([usage.total, usage.hasMore], [0.000001, false]);
      assert.partialDeepStrictEqual(await farebox.verifyReceipt(receipt), {
        valid: true,
        charge: { id, amount: 0.000001, livemode: false },
      });
      const spoiled = receipt.replace('.1.e', '.1.f');
      assert.equal((await farebox.verifyReceipt(spoiled)).valid, false);
    });

    it('makes many charges at once, each by itself', async () => {
      const settled = await Promise.allSettled(
        Array.from({ length: 15 }, (_, n) => charge({ idempotencyKey: `key ${n}` })),
      );
      assert.equal(settled.filter(({ status }) => status === 'fulfilled').length, 10);
      assert.equal(await balance(), 0);
      const ids: string[] = [];
      for await (const { id } of farebox.charges.list({ limit: 4 })) ids.push(id);
      assert.equal(new Set(ids).size, 10);
    });

    it('answers a key again with what it made, and refuses it for something else', async () => {
      const first = await charge({ idempotencyKey: 'job' });
      assert.deepEqual(await charge({ idempotencyKey: 'job' }), { ...first, replayed: true });
      const error = await raised(charge({ amount: 2, idempotencyKey: 'job' }));
      assert.deepEqual([error.code, error.status], ['idempotency_key_reused', 422]);
      assert.equal(await balance(), 9);
      // The name that it refused with an amount is known from then on.
      await raised(charge({ tool: 'refused', idempotencyKey: 'job' }));
      const unpriced = await raised(charge({ tool: 'refused', amount: undefined }));
      assert.deepEqual([unpriced.code, unpriced.param], ['invalid_amount', 'amount']);
    });

    it('answers on demand, by the amount of a charge, a hold or a top-up', async () => {
      for (const [micros, code] of MAGIC_REFUSALS) {
        const { status: expected } = new ApiError(code, 'It says so.');
        for (const asked of [charge, hold]) {
          assert.deepEqual(await told(asked({ amount: micros / 1e6 })), [code, expected, false]);
        }
      }
      assert.equal(await balance(), 10);
      assert.equal((await raised(charge({ amount: 0.990402 }))).shortfall, 0.990402);
      for (const asked of [charge, hold]) {
        const key = { amount: LOST_MICROS / 1e6, idempotencyKey: 'lost' };
        assert.equal((await raised(asked(key))).outcome, 'unknown');
        assert.equal((await asked(key)).replayed, true);
        const late = { amount: LATE_MICROS / 1e6, idempotencyKey: 'late' };
        const caller = new AbortController();
        const before = await balance();
        const first = raised(asked(late, { signal: caller.signal }));
        // It is made, and its answer is still to come.
        await until(async () => (await balance()) < before);
        caller.abort();
        assert.equal((await first).outcome, 'unknown');
        assert.equal((await asked(late)).replayed, true);
      }
      const left = await balance();
      for (const [micros, magic] of MAGIC_TOP_UPS) {
        const { code } = await raised(consumer.topUp({ amount: micros / 1e6 }));
        assert.equal(code, CODES[magic.kind] ?? ('failure' in magic && magic.failure.code));
      }
      assert.equal(await balance(), left);
    });

    it('refuses what is more than the balance, with the facts', async () => {
      const error = await raised(charge({ amount: 10.5 }));
      const { code, status, type, required, shortfall } = error;
      assert.deepEqual([code, status, type], ['insufficient_balance', 402, 'payment_error']);
      assert.deepEqual([error.balance, required, shortfall], [10, 10.5, 0.5]);
      const { developerId } = await charge();
      assert.deepEqual([error.developerId, error.tool], [developerId, 'search']);
      assert.match(error.message, /^The balance of \$10\.00 does not cover \$10\.50;/);
      assert.match(error.topUpUrl ?? '', /\/top-up\?link=/);
      assert.match(error.requestId ?? '', /^req_[0-9a-f]{32}$/);
      assert.match(error.docUrl ?? '', /\/docs\/errors#insufficient_balance$/);
      assert.equal(await balance(), 9);
      // A refusal is not what a key names.
      await raised(charge({ amount: 11, idempotencyKey: 'later' }));
      assert.equal((await charge({ amount: 1, idempotencyKey: 'later' })).replayed, false);
    });

    for (const [amount, code] of [
      [0, 'invalid_amount'],
      [3 * 0.07, 'invalid_amount'],
      ['0.0000001', 'invalid_amount'],
      [1_000_001, 'invalid_amount'],
    ] as const) {
      it(`refuses to charge ${amount}`, async () => {
        const error = await raised(charge({ amount }));
        assert.deepEqual([error.code, error.status, error.param], [code, 400, 'amount']);
      });
    }

    for (const [what, changes] of Object.entries({
      'no tool': { tool: undefined },
      'an empty tool': { tool: '' },
      'a tool that is no text': { tool: 7 },
      'a long tool': { tool: 'x'.repeat(5_000) },
      'a tool with a line break': { tool: 'a\nb' },
      'nested metadata': { metadata: { a: { b: 1 } } },
      'a list as metadata': { metadata: [1] },
      'long metadata': { metadata: { a: 'x'.repeat(5_000) } },
      'metadata with a long name': { metadata: { ['x'.repeat(41)]: 1 } },
      'too much metadata': { metadata: names(21) },
    })) {
      it(`refuses a charge and a hold with ${what}`, async () => {
        for (const ask of [charge, hold]) {
          assert.deepEqual(await told(ask(changes)), ['invalid_request', 400, false]);
        }
        assert.equal(await balance(), 10);
      });
    }

    it('takes a tool and metadata at their limits', async () => {
      const limits = { tool: 'x'.repeat(100), metadata: { ...names(19), a: 'x'.repeat(500) } };
      assert.equal((await charge(limits)).paid, true);
      assert.equal((await hold({ ...limits, expiresIn: 86_400 })).status, 'open');
    });

    for (const expiresIn of [0, -1, 1.5, 86_401, 1e6]) {
      it(`refuses a hold of ${expiresIn} seconds`, async () => {
        assert.deepEqual(await told(hold({ expiresIn })), ['invalid_request', 400, false]);
        const { id: holdId } = await hold();
        const extended = farebox.holds.extend({ holdId, expiresIn });
        assert.deepEqual(await told(extended), ['invalid_request', 400, false]);
      });
    }

    it('refuses a capture with nested metadata', async () => {
      const { id: holdId } = await hold();
      const metadata = { a: { b: 1 } } as never;
      const captured = farebox.holds.capture({ holdId, metadata });
      assert.deepEqual(await told(captured), ['invalid_request', 400, false]);
    });

    it('refuses a batch that is empty or too long, and only the member that is wrong', async () => {
      const member = { apiKey, tool: 'search', amount: 0.001 };
      const wrong = { ...member, metadata: { a: { b: 1 } } } as never;
      const batches = [[], Array.from({ length: 1_001 }, () => member)];
      for (const members of batches) {
        const asked = farebox.batch(members);
        assert.deepEqual(await told(asked), ['invalid_request', 400, false]);
      }
      assert.equal(await balance(), 10);
      const [first, second] = await farebox.batch([member, wrong]);
      assert.equal(first?.status, 201);
      assert.partialDeepStrictEqual(second, { status: 400, error: { code: 'invalid_request' } });
    });

    it('answers a spend key that was revoked with what it made before', async () => {
      const { id } = await consumer.budgets.create({ name: 'agent', limit: 5 });
      const { id: keyId, key } = await consumer.budgets.createKey(id);
      const asked = { apiKey: key, tool: 'search', amount: 1, idempotencyKey: 'job' };
      const [charged, held] = [await farebox.charge(asked), await farebox.holds.place(asked)];
      await consumer.budgets.revokeKey(keyId);
      const other = { apiKey: key, tool: 'search', amount: 0.01 };
      await until(async () => {
        const code = await farebox.charge(other).catch((error: FareboxError) => error.code);
        return code === 'invalid_api_key';
      });
      assert.deepEqual(await farebox.charge(asked), { ...charged, replayed: true });
      assert.equal((await farebox.holds.place(asked)).id, held.id);
    });

    it('knows its keys', async () => {
      const error = await raised(charge({ apiKey: `${apiKey}x` }));
      assert.deepEqual([error.code, error.status, error.param], ['invalid_api_key', 401, 'apiKey']);
    });

    it('gives callers without a key the same help as those with a wrong one', async () => {
      for (const call of [charge, hold]) {
        const wrong = await raised(call({ apiKey: `${apiKey}x` }));
        const missing = await raised(call({ apiKey: undefined }));
        assert.match(String(wrong.keysUrl), /^http.+\/console\/budgets$/);
        const { code, status, type, param, outcome, docUrl, keysUrl } = wrong;
        const help = { code, status, type, param, outcome, docUrl, keysUrl };
        assert.partialDeepStrictEqual(missing.toJSON(), help);
      }
    });

    it('charges a tool by its price', async () => {
      const unknown = await raised(charge({ amount: undefined }));
      assert.deepEqual([unknown.code, unknown.param], ['unknown_tool', 'tool']);
      const tool = await farebox.tools.create({ name: 'search', price: '0.25' });
      assert.partialDeepStrictEqual(tool, { name: 'search', description: '', price: 0.25 });
      assert.equal((await charge({ amount: undefined })).amount, 0.25);
      const taken = await raised(farebox.tools.create({ name: 'search' }));
      assert.deepEqual([taken.code, taken.status, taken.toolId], ['tool_exists', 409, tool.id]);
      await farebox.tools.update(tool.id, { price: usd('0.5') });
      assert.partialDeepStrictEqual((await farebox.tools.list().page()).tools, [
        { id: tool.id, price: 0.5, totalCharges: 1, totalRevenue: 0.25 },
      ]);
      await farebox.tools.update(tool.id, { archived: true });
      assert.equal((await farebox.tools.get(tool.id)).archived, true);
      assert.equal((await raised(charge({ amount: undefined }))).code, 'tool_archived');
      assert.deepEqual((await farebox.tools.list().page()).tools, []);
      assert.equal((await raised(farebox.tools.get(`tool_${ID}`))).code, 'not_found');
    });

    it('refunds a charge until nothing is left', async () => {
      const { id: chargeId } = await charge();
      const part = { chargeId, amount: 0.25, idempotencyKey: 'part' };
      const first = await farebox.refund(part);
      assert.partialDeepStrictEqual(first, { chargeId, amount: 0.25, refunded: 0.25 });
      assert.deepEqual(await farebox.refund(part), { ...first, replayed: true });
      const error = await raised(farebox.refund({ chargeId, amount: 0.8 }));
      assert.deepEqual([error.code, error.refundable], ['refund_exceeds_charge', 0.75]);
      assert.equal(error.message, 'Only $0.75 of the charge is left to refund.');
      assert.equal((await farebox.refund({ chargeId })).refunded, 1);
      const none = await raised(farebox.refund({ chargeId }));
      assert.deepEqual(
        [none.refundable, none.message],
        [0, 'The charge has been refunded in full.'],
      );
      assert.equal((await raised(farebox.refund({ chargeId: `chg_${ID}` }))).code, 'not_found');
      const { totalEarnings, byTool } = await farebox.earnings();
      assert.deepEqual([await balance(), totalEarnings, byTool['search'] ?? 0], [10, 0, 0]);
    });

    it('lists and adds up what is in a range of time', async () => {
      const { id: chargeId, createdAt } = await charge();
      await farebox.refund({ chargeId, amount: 0.25 });
      const { id } = await charge({ tool: 'other' });
      const hour = (hours: number) =>
        new Date(Math.floor(Date.parse(createdAt) / 3_600_000 + hours) * 3_600_000).toISOString();
      const ids = async (range: { from?: string; to?: string }) =>
        (await farebox.charges.list({ ...range, tool: 'search' }).page()).charges.map(
          (each) => each.id,
        );
      assert.deepEqual(await ids({ from: createdAt }), [chargeId]);
      assert.deepEqual(await ids({ to: createdAt }), []);
      assert.deepEqual(await ids({ from: hour(0), to: hour(2) }), [chargeId]);
      const none = await consumer.charges.list({ from: hour(2) }).page();
      assert.deepEqual([none.charges, none.total], [[], 0]);
      assert.equal((await consumer.charges.list({ from: hour(0) }).page()).charges[0]?.id, id);
      const range = { from: hour(0), to: hour(2) };
      assert.deepEqual((await farebox.earnings(range)).byTool, { search: 0.75, other: 1 });
      const { byTool, totalEarnings } = await farebox.earnings({ to: hour(0) });
      assert.deepEqual([byTool, totalEarnings], [{}, 0]);
      for (const wrong of [
        () => farebox.charges.list({ from: hour(2), to: hour(1) }).page(),
        () => consumer.charges.list({ from: 'yesterday' }).page(),
        () => farebox.earnings({ from: hour(0).replace(':00:', ':30:') }),
        () => farebox.earnings({ from: hour(0), to: hour(0) }),
      ]) {
        const { code, param } = await raised(wrong());
        assert.deepEqual([code, param], ['invalid_request', 'from']);
      }
    });

    it('counts a refund when it is made, in what was used until then', async () => {
      const { id: chargeId, createdAt } = await charge();
      await until(async () => Date.now() > Date.parse(createdAt));
      const refund = await farebox.refund({ chargeId, amount: 0.25 });
      assert.equal(await total({ to: refund.createdAt }), 1);
      assert.equal(await total({ from: refund.createdAt }), -0.25);
      assert.equal(await total({}), 0.75);
    });

    it('lists holds by their state, to both sides', async () => {
      const [first, second] = [await hold(), await hold()];
      await farebox.holds.release({ holdId: first.id });
      assert.deepEqual(await idsOf(farebox.holds.list({ status: 'open' })), [second.id]);
      assert.deepEqual(await idsOf(consumer.holds.list({ status: 'released' })), [first.id]);
      assert.deepEqual(new Set(await idsOf(consumer.holds.list())), new Set([first.id, second.id]));
      assert.equal((await consumer.holds.get(second.id)).status, 'open');
      const { id } = await hold({ metadata: { margin: 'secret' } });
      assert.deepEqual((await farebox.holds.get(id)).metadata, { margin: 'secret' });
      const [listed] = (await consumer.holds.list().page()).holds;
      for (const shown of [listed, await consumer.holds.get(id)]) {
        assert.ok(shown?.id === id && !('metadata' in shown));
      }
    });

    it('captures a hold once, and gives back the rest', async () => {
      const placed = await hold();
      assert.partialDeepStrictEqual(placed, { amount: 2, captured: 0, remaining: 2 });
      assert.deepEqual([placed.status, placed.balance], ['open', 8]);
      const asked = { holdId: placed.id, amount: '0.5', idempotencyKey: 'once' };
      const captured = await farebox.holds.capture(asked);
      assert.partialDeepStrictEqual(captured, { amount: 0.5, balance: 9.5, holdId: placed.id });
      assert.partialDeepStrictEqual(captured.hold, { status: 'captured', remaining: 0 });
      assert.deepEqual(await farebox.holds.capture(asked), { ...captured, replayed: true });
      const error = await raised(farebox.holds.capture({ holdId: placed.id }));
      assert.deepEqual(
        [error.code, error.status, error.objectStatus],
        ['hold_closed', 409, 'captured'],
      );
      assert.equal(
        (await raised(farebox.holds.release({ holdId: placed.id }))).code,
        'hold_closed',
      );
      assert.equal((await farebox.charges.get(captured.id)).holdId, placed.id);
      assert.deepEqual((await farebox.earnings()).byTool, { search: 0.5 });
      assert.equal((await farebox.earnings({ tool: 'other' })).totalEarnings, 0);
    });

    it('captures in parts, and more than was held only when it is told so', async () => {
      const { id: holdId } = await hold();
      await farebox.holds.capture({ holdId, amount: 0.5, final: false });
      const error = await raised(farebox.holds.capture({ holdId, amount: 3 }));
      assert.deepEqual([error.code, error.status, error.remaining], ['exceeds_hold', 402, 1.5]);
      assert.match(error.message, /^Only \$1\.50 of the hold is left\./);
      assert.equal((await farebox.holds.capture({ holdId, amount: 3, over: 'cap' })).amount, 1.5);
      const { id: second } = await hold();
      const overflow = { holdId: second, amount: 3, over: 'overflow' } as const;
      assert.equal((await farebox.holds.capture(overflow)).balance, 5);
      const { id: third } = await hold();
      const tooMuch = await raised(
        farebox.holds.capture({ ...overflow, holdId: third, amount: 9 }),
      );
      assert.equal(tooMuch.code, 'insufficient_balance');
      assert.equal((await farebox.holds.get(third)).status, 'open');
    });

    it('releases, extends and lists holds', async () => {
      const [first, second] = [await hold(), await hold()];
      const extended = await farebox.holds.extend({ holdId: first.id, expiresIn: 3_600 });
      assert.ok(Date.parse(extended.expiresAt) > Date.parse(first.expiresAt));
      assert.equal((await farebox.holds.release({ holdId: second.id })).status, 'released');
      assert.equal((await farebox.holds.release({ holdId: second.id })).status, 'released');
      const listed: string[] = [];
      for await (const { id, status } of farebox.holds.list({ limit: 1 })) {
        listed.push(`${id} ${status}`);
      }
      assert.deepEqual(listed, [`${second.id} released`, `${first.id} open`]);
      assert.equal(await balance(), 8);
      const unknown = await raised(farebox.holds.capture({ holdId: `hld_${ID}` }));
      assert.deepEqual([unknown.code, unknown.status], ['hold_not_found', 404]);
      assert.equal((await raised(hold({ amount: 9 }))).code, 'insufficient_balance');
    });

    it('captures nothing of a hold whose time is over', async () => {
      const { id: holdId } = await hold({ expiresIn: 1 });
      const error = await until(() =>
        farebox.holds.capture({ holdId, amount: 0.01, final: false }).then(
          () => undefined,
          (raised: { code: string; objectStatus: string }) => raised,
        ),
      );
      assert.deepEqual([error.code, error.objectStatus], ['hold_closed', 'expired']);
    });

    it('is paid by a paid route, and not when it fails', async () => {
      const options = { tool: 'route', price: '0.5' };
      const headers = { 'x-service-key': apiKey };
      const ask = async (status: number) =>
        paidRoute(
          farebox,
          options,
          () => new Response('', { status }),
        )(new Request('http://site/', { headers }));
      assert.match((await ask(200)).headers.get('x-charge-id') ?? '', /^chg_/);
      assert.equal((await ask(500)).headers.get('x-charge-id'), null);
      assert.equal(await balance(), 9.5);
    });
  });
}

describe('client: the fake', () => {
  it('tops up without a card', async () => {
    const fake = new FakeFarebox();
    const { apiKey } = fake.addConsumer({ balance: usd('0.1').times(3) });
    const consumer = fake.consumer(apiKey);
    const topUp = await consumer.topUp({ amount: 5, idempotencyKey: 'once' });
    assert.partialDeepStrictEqual(topUp, { amount: 5, balance: 5.3, status: 'completed' });
    await consumer.topUp({ amount: 5, idempotencyKey: 'once' });
    assert.equal((await consumer.balance()).balance, 5.3);
    for (const amount of [0.1, 5.001, 1_000_000]) {
      assert.equal((await raised(consumer.topUp({ amount }))).code, 'invalid_amount');
    }
  });

  it('is away when it is told to be, and then nothing happens', async () => {
    const fake = new FakeFarebox();
    const { apiKey } = fake.addConsumer({ balance: 1 });
    const request = { apiKey, tool: 'search', amount: 1 };
    fake.isAway = true;
    const error = await raised(fake.farebox().charge(request));
    assert.deepEqual([error.code, error.outcome], ['service_unavailable', 'not_charged']);
    const unpaid = fake.farebox({ onUnavailable: 'run_unpaid' });
    assert.equal((await unpaid.charge(request)).paid, false);
    fake.isAway = false;
    assert.equal((await fake.farebox().charge(request)).balance, 0);
  });

  it('says what it does not have', async () => {
    const error = await raised(new FakeFarebox().farebox().statement('2026-11'));
    assert.deepEqual([error.code, error.message.includes('/v1/statements')], ['not_found', true]);
  });
});
