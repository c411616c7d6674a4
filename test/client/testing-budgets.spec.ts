/** The fake decides about budgets and approvals as the service does: one suite, which both must pass. */
import assert from 'node:assert/strict';
import type { Farebox, FareboxConsumer, FareboxError } from '@farebox/client';
import { FakeFarebox } from '@farebox/client/testing';
import { until } from '../support/stack.ts';
import { fakeService, realService, type Ground } from './grounds.ts';
import { raised } from './scripted-service.ts';

const factsOf = (error: FareboxError) => error.toJSON();
const codeOf = (asked: Promise<unknown>): Promise<string | undefined> =>
  asked.then(
    () => undefined,
    (error: { code?: string }) => error.code,
  );

for (const [name, service] of Object.entries({ service: realService(), fake: fakeService() })) {
  describe(`client: what the ${name} decides about budgets`, () => {
    let farebox: Farebox;
    let consumer: FareboxConsumer;
    let consumerBy: Ground['consumerBy'];

    before(() => service.start());
    beforeEach(async () => {
      ({ farebox, consumer, consumerBy } = await service.open());
    });
    after(() => service.stop());

    type Settings = Parameters<FareboxConsumer['budgets']['create']>[0];
    const make = (settings: Partial<Settings> = {}) =>
      consumer.budgets.create({ name: 'agent', ...settings });
    const keyOf = async (id: string) => (await consumer.budgets.createKey(id)).key;
    const pay = (apiKey: string, amount: number, tool = 'search') =>
      farebox.charge({ apiKey, tool, amount });
    const used = async (id: string) => (await consumer.budgets.get(id)).used;

    it('makes a budget with all its fields, and once for an idempotency key', async () => {
      const settings = {
        limit: 5,
        window: { per: 'day', limit: '2' },
        maxPerCall: 1,
        metadata: { team: 'a' },
        idempotencyKey: 'once',
      } as const;
      const made = await make(settings);
      const { id, createdAt, window, ...fields } = made;
      assert.ok(id.startsWith('bdg_') && Date.parse(createdAt));
      assert.deepEqual([window?.per, window?.limit, window?.used], ['day', 2, 0]);
      const midnight = new Date().setUTCHours(24, 0, 0, 0);
      assert.equal(Date.parse(window?.resetsAt ?? ''), midnight);
      assert.deepEqual(fields, {
        parentId: null,
        name: 'agent',
        status: 'active',
        limit: 5,
        used: 0,
        remaining: 2,
        maxPerCall: 1,
        allowLeases: false,
        maxLease: null,
        tools: null,
        developers: null,
        approveDevelopers: false,
        approvedDevelopers: [],
        mayDelegate: false,
        limitsConsumerKeys: false,
        expiresAt: null,
        metadata: { team: 'a' },
      });
      assert.deepEqual(await make(settings), made);
      assert.equal((await raised(make({ ...settings, limit: 6 }))).code, 'idempotency_key_reused');
      assert.deepEqual((await consumer.budgets.list().page()).budgets, [made]);
    });

    it('gives the time when a budget or a key expires in UTC, in whole milliseconds', async () => {
      const { id } = await make();
      for (const [sent, given] of [
        ['2099-01-01', '2099-01-01T00:00:00.000Z'],
        ['2099-01-01T00:00Z', '2099-01-01T00:00:00.000Z'],
        ['2099-01-01T01:00:00+01:00', '2099-01-01T00:00:00.000Z'],
        ['2099-01-01T00:00:00.123456Z', '2099-01-01T00:00:00.124Z'],
        ['2099-01-01T00:00:00.123000Z', '2099-01-01T00:00:00.123Z'],
      ] as const) {
        assert.equal((await make({ expiresAt: sent })).expiresAt, given);
        assert.equal((await consumer.budgets.update(id, { expiresAt: sent })).expiresAt, given);
        await consumer.budgets.createKey(id, { expiresAt: sent });
        const [key] = (await consumer.budgets.listKeys(id).page()).keys;
        assert.equal(key?.expiresAt, given);
      }
    });

    it('refuses settings, questions and pages that the API refuses', async () => {
      const { id } = await make({ limit: 1 });
      const [apiKey, past] = [await keyOf(id), '2020-01-01T00:00:00Z'];
      const { budgets } = consumer;
      const ask = (changes: object) =>
        farebox.approvals.ask({ apiKey, tool: 'search', amount: 2, ...changes });
      const [{ id: keyId } = assert.fail()] = (await budgets.listKeys(id).page()).keys;
      const wrong: Readonly<Record<string, () => Promise<unknown>>> = {
        name: () => make({ name: 'x'.repeat(101) }),
        'window.per': () => make({ window: { per: 'year' as 'day', limit: 1 } }),
        tools: () => make({ tools: [] }),
        expiresAt: () => budgets.update(id, { expiresAt: past }),
        limit: () => make({ limit: 1e12 }),
        'metadata.a': () => make({ metadata: { a: { b: 1 } as never } }),
        reason: () => ask({ reason: 'x'.repeat(501) }),
        expiresIn: () => ask({ expiresIn: 59 }),
        tool: () => ask({ tool: '' }),
        overlapSeconds: () => budgets.rollKey(keyId, { overlapSeconds: -1 }),
        by: () => budgets.usage(id, { by: 'month' as 'day' }).page(),
        from: () => budgets.usage(id, { from: '2026-01-01T12:00Z' }).page(),
        cursor: () => farebox.charges.list().page('bad'),
      };
      for (const [param, call] of Object.entries(wrong)) {
        const error = await raised(call());
        assert.deepEqual([error.status, error.param], [400, param]);
      }
      for (const limit of [0, 101]) {
        assert.equal((await raised(farebox.charges.list({ limit }).page())).param, 'limit');
      }
      const keyed = await raised(budgets.createKey(id, { expiresAt: past }));
      assert.deepEqual([keyed.code, keyed.param], ['invalid_request', 'expiresAt']);
      assert.equal((await ask({ reason: 'x'.repeat(500) })).status, 'pending');
    });

    it('charges a spend key within every limit on its path, and names the first that refuses', async () => {
      const root = await make({ limit: 3 });
      const leaf = await make({
        parentId: root.id,
        window: { per: 'month', limit: 2 },
        maxPerCall: 1.5,
      });
      const key = await keyOf(leaf.id);
      const paid = await pay(key, 1);
      assert.equal(paid.balance, 9);
      const { developerId } = paid;
      const perCall = await raised(pay(key, 1.75));
      assert.partialDeepStrictEqual(factsOf(perCall), {
        code: 'spend_limit_reached',
        status: 402,
        budgetId: leaf.id,
        scope: 'per_call',
        limit: 1.5,
        remaining: 1.5,
        developerId,
        tool: 'search',
        required: 1.75,
      });
      assert.equal(perCall.resetsAt, undefined);
      assert.equal(perCall.message, 'The budget allows at most $1.50 for one call.');
      const window = await raised(pay(key, 1.25));
      assert.equal(window.message, 'The budget allows $2.00 in its current window; $1.00 is left.');
      assert.partialDeepStrictEqual(factsOf(window), { scope: 'window', limit: 2, remaining: 1 });
      const beside = await keyOf((await make({ parentId: root.id })).id);
      await pay(beside, 1.5);
      const total = await raised(pay(key, 0.75));
      assert.partialDeepStrictEqual(factsOf(total), {
        budgetId: root.id,
        scope: 'total',
        remaining: 0.5,
        developerId,
        tool: 'search',
        required: 0.75,
      });
      assert.equal(total.message, 'The budget allows $3.00 in total; $0.50 is left.');
      assert.deepEqual([await used(root.id), await used(leaf.id)], [2.5, 1]);
      assert.equal((await consumer.budgets.get(leaf.id)).remaining, 0.5);
      assert.equal((await consumer.balance()).balance, 7.5);
    });

    it('gives back what is refunded, released and not captured, and counts what exceeds a hold', async () => {
      const { id } = await make({ limit: 5, window: { per: 'day', limit: 5 } });
      const key = await keyOf(id);
      const charge = await pay(key, 2);
      await farebox.refund({ chargeId: charge.id, amount: 0.5 });
      assert.equal(await used(id), 1.5);
      const hold = await farebox.holds.place({ apiKey: key, tool: 'search', amount: 2 });
      assert.equal(await used(id), 3.5);
      await farebox.holds.capture({ holdId: hold.id, amount: 0.5 });
      assert.equal(await used(id), 2);
      const second = await farebox.holds.place({ apiKey: key, tool: 'search', amount: 1 });
      assert.equal((await consumer.balance()).held, 1);
      const asked = { holdId: second.id, over: 'overflow' } as const;
      const tooMuch = await raised(farebox.holds.capture({ ...asked, amount: 3.5 }));
      assert.equal(tooMuch.code, 'spend_limit_reached');
      await farebox.holds.capture({ ...asked, amount: 2 });
      assert.deepEqual([await used(id), (await consumer.budgets.get(id)).window?.used], [4, 4]);
      const third = await farebox.holds.place({ apiKey: key, tool: 'search', amount: 1 });
      await farebox.holds.release({ holdId: third.id });
      assert.equal(await used(id), 4);
      const usage = await consumer.budgets.usage(id, { by: 'tool' }).page();
      assert.deepEqual(usage.usage, [{ tool: 'search', spent: 4, charges: 3 }]);
    });

    it('adds up what was spent by tool, key, developer and day, in order and in a range of days', async () => {
      const { id } = await make();
      const [first, second] = [
        await consumer.budgets.createKey(id, { name: 'first' }),
        await consumer.budgets.createKey(id),
      ];
      await pay(first.key, 1, 'search');
      await pay(second.key, 2, 'fetch');
      await pay(first.key, 0.5, 'fetch');
      const by = async (query: Parameters<FareboxConsumer['budgets']['usage']>[1]) =>
        (await consumer.budgets.usage(id, query).page()).usage;
      assert.deepEqual(await by({}), [
        { tool: 'fetch', spent: 2.5, charges: 2 },
        { tool: 'search', spent: 1, charges: 1 },
      ]);
      assert.deepEqual(await by({ by: 'key' }), [
        { keyId: second.id, keyName: null, spent: 2, charges: 1 },
        { keyId: first.id, keyName: 'first', spent: 1.5, charges: 2 },
      ]);
      const [developer] = await by({ by: 'developer' });
      assert.deepEqual([developer?.spent, developer?.charges], [3.5, 3]);
      assert.equal((await by({ by: 'day', from: '2026-01-01' })).at(-1)?.charges, 3);
      assert.deepEqual(await by({ by: 'day', to: '2026-01-01' }), []);
    });

    it('refuses tools, developers and keys that a budget does not allow', async () => {
      const { id } = await make({ tools: ['search'] });
      const { id: keyId, key } = await consumer.budgets.createKey(id, { name: 'session' });
      const refused = await raised(pay(key, 1, 'other'));
      assert.partialDeepStrictEqual(factsOf(refused), {
        code: 'tool_not_allowed',
        status: 403,
        budgetId: id,
      });
      const stranger = `dev_${'0'.repeat(32)}`;
      const foreign = await keyOf((await make({ tools: [`${stranger}/search`] })).id);
      for (const tool of ['search', `${stranger}/search`]) {
        assert.equal(await codeOf(pay(foreign, 1, tool)), 'tool_not_allowed');
      }
      const strange = await make({ developers: [stranger] }).catch(() => undefined);
      if (strange) {
        const error = await raised(pay(await keyOf(strange.id), 1));
        assert.equal(error.code, 'developer_not_allowed');
      }
      const revoked = await consumer.budgets.revokeKey(keyId);
      assert.deepEqual(await consumer.budgets.revokeKey(keyId), revoked);
      assert.deepEqual([revoked.name, revoked.lastFour], ['session', key.slice(-4)]);
      await until(async () => (await codeOf(pay(key, 0.01))) === 'invalid_api_key');
      const other = await keyOf(id);
      assert.equal((await consumer.budgets.close(id)).status, 'closed');
      await until(async () => (await codeOf(pay(other, 0.01))) === 'invalid_api_key');
      const closed = await raised(consumer.budgets.createKey(id));
      assert.deepEqual([closed.code, closed.status], ['budget_closed', 409]);
    });

    it('shows a spend key its own budget, and lets it split that only if it may', async () => {
      const root = await make({ limit: 5, parentId: null });
      const own = await make({ parentId: root.id });
      const plain = consumerBy(await keyOf(own.id));
      const { budgets } = await plain.budgets.list().page();
      assert.deepEqual(budgets, [{ ...own, parentId: null }]);
      assert.equal((await raised(plain.budgets.get(root.id))).status, 404);
      const refused = await raised(plain.budgets.create({ name: 'below' }));
      assert.deepEqual([refused.code, refused.status], ['delegation_not_allowed', 403]);
      const { code, param, keysUrl } = await raised(plain.balance());
      assert.deepEqual([code, param], ['invalid_api_key', undefined]);
      assert.match(String(keysUrl), /\/console\/keys$/);
      assert.equal(
        (await raised(consumerBy('fare_ck_test_x').budgets.list().page())).param,
        undefined,
      );
      const delegating = await make({ mayDelegate: true, limit: 1 });
      const holder = consumerBy(await keyOf(delegating.id));
      const below = await holder.budgets.create({ name: 'below', limit: 9 });
      assert.deepEqual([below.parentId, below.remaining], [delegating.id, 1]);
      const { key } = await holder.budgets.createKey(below.id);
      await pay(key, 0.75);
      assert.equal(await used(delegating.id), 0.75);
    });

    it('asks the owner and charges after the answer', async () => {
      const { id } = await make({ limit: 1 });
      const apiKey = await keyOf(id);
      const call = { apiKey, tool: 'search', amount: 2 };
      const paying = farebox.charge({ ...call, ask: { reason: 'more', timeoutMs: 30_000 } });
      const pending = async () =>
        (await consumer.approvals.list({ status: 'pending' }).page()).approvals;
      await until(async () => (await pending()).length === 1);
      const [question] = await pending();
      assert.partialDeepStrictEqual(question, {
        status: 'pending',
        code: 'spend_limit_reached',
        budgetId: id,
        budgetName: 'agent',
        keyName: null,
        scope: 'total',
        limit: 1,
        tool: 'search',
        amount: 2,
        reason: 'more',
        askedBy: 'developer',
        decision: null,
        used: false,
      });
      await consumer.approvals.decide(question?.id ?? '', { decision: 'once' });
      assert.equal((await paying).amount, 2);
      assert.equal((await consumer.approvals.get(question?.id ?? '')).used, true);
      assert.deepEqual(
        [await used(id), (await raised(farebox.charge(call))).code],
        [2, 'spend_limit_reached'],
      );
      const late = await raised(
        consumer.approvals.decide(question?.id ?? '', { decision: 'deny' }),
      );
      assert.deepEqual([late.code, late.status], ['approval_closed', 409]);
    });

    it('names the key that asks to the owner alone, and ends its requests with it', async () => {
      const { id } = await make({ limit: 1 });
      const made = await consumer.budgets.createKey(id, { name: 'agent 7' });
      const call = { apiKey: made.key, tool: 'search', amount: 2 };
      const asked = await farebox.approvals.ask(call);
      assert.deepEqual([asked.keyId, asked.keyName], [null, null]);
      const shown = await consumer.approvals.get(asked.id);
      assert.deepEqual([shown.keyId, shown.keyName], [made.id, 'agent 7']);
      const next = await consumer.budgets.rollKey(made.id);
      assert.equal((await consumer.approvals.get(asked.id)).keyId, next.id);
      await consumer.budgets.revokeKey(next.id);
      const { status, decision } = await consumer.approvals.get(asked.id);
      assert.deepEqual([status, decision], ['expired', null]);
      const raise = { decision: 'raise', limit: 9 } as const;
      const late = await raised(consumer.approvals.decide(asked.id, raise));
      assert.deepEqual([late.code, late.status], ['approval_closed', 409]);
      assert.equal((await consumer.budgets.get(id)).limit, 1);
    });

    it('raises a limit, approves a developer, denies, and knows when nothing refuses', async () => {
      const { id } = await make({ limit: 1, maxPerCall: 3 });
      const apiKey = await keyOf(id);
      const call = { apiKey, tool: 'search', amount: 2 };
      const asked = await farebox.approvals.ask(call);
      assert.equal((await farebox.approvals.ask(call)).id, asked.id);
      const raise = { decision: 'raise', limit: 4 } as const;
      const { raisedTo, decision } = await consumer.approvals.decide(asked.id, raise);
      assert.deepEqual([raisedTo, decision], [4, 'raise']);
      assert.equal((await consumer.budgets.get(id)).limit, 4);
      await until(
        async () => (await codeOf(farebox.approvals.ask(call))) === 'approval_not_needed',
      );
      assert.equal((await farebox.charge(call)).amount, 2);
      const dear = await farebox.approvals.ask({ ...call, amount: 3.5 });
      assert.deepEqual([dear.scope, dear.limit], ['per_call', 3]);
      assert.equal(
        (await consumer.approvals.decide(dear.id, { decision: 'deny' })).status,
        'denied',
      );
      const strict = await make({ approveDevelopers: true });
      const first = { ...call, apiKey: await keyOf(strict.id) };
      const required = await raised(farebox.charge(first));
      assert.deepEqual([required.code, required.status], ['approval_required', 403]);
      assert.deepEqual([required.tool, required.required], ['search', 2]);
      assert.match(required.developerId ?? '', /^dev_/);
      const { id: approvalId } = await farebox.approvals.ask(first);
      await consumer.approvals.decide(approvalId, { decision: 'always' });
      await until(async () => (await farebox.charge(first).catch(() => undefined)) !== undefined);
      assert.equal((await consumer.budgets.get(strict.id)).approvedDevelopers.length, 1);
    });

    it('lets a call pass the limit that refused, and asks about another one on its own', async () => {
      const { id } = await make({ limit: 1, window: { per: 'month', limit: 1.5 } });
      const apiKey = await keyOf(id);
      const paying = farebox.charge({ apiKey, tool: 'search', amount: 2, ask: true });
      for (const scope of ['total', 'window']) {
        const questions = consumer.approvals.list({ status: 'pending', budgetId: id });
        const question = await until(async () => (await questions.page()).approvals[0]);
        assert.equal(question.scope, scope);
        await consumer.approvals.decide(question.id, { decision: 'once' });
      }
      assert.equal((await paying).amount, 2);
      assert.equal(await used(id), 2);
    });

    it('lets a new developer charge once within the limits, and asks about a limit on its own', async () => {
      const { id } = await make({ limit: 2, approveDevelopers: true });
      const call = { apiKey: await keyOf(id), tool: 'search', amount: 3 };
      const asked = async () => {
        const approval = await farebox.approvals.ask(call);
        await consumer.approvals.decide(approval.id, { decision: 'once' });
        return approval;
      };
      const first = await asked();
      assert.equal(first.code, 'approval_required');
      const refused = await until(async () => {
        const error = await raised(farebox.charge(call));
        return error.code !== 'approval_required' && error;
      });
      assert.deepEqual([refused.code, refused.scope], ['spend_limit_reached', 'total']);
      const second = await asked();
      assert.deepEqual([second.code, second.scope], ['spend_limit_reached', 'total']);
      await until(async () => (await farebox.charge(call).catch(() => undefined)) !== undefined);
      assert.equal(await used(id), 3);
      const approvals = await Promise.all(
        [first, second].map((each) => farebox.approvals.get(each.id)),
      );
      assert.deepEqual(
        approvals.map((each) => each.used),
        [true, true],
      );
      assert.equal(await codeOf(farebox.charge({ ...call, amount: 1 })), 'approval_required');
    });
  });
}

describe('client: a window of the fake', () => {
  const now = Date.now;
  afterEach(() => {
    Date.now = now;
  });

  it('that has ended shows that nothing is used of the next one', async () => {
    const fake = new FakeFarebox();
    const { apiKey: consumerKey } = fake.addConsumer({ balance: 10 });
    const { budgets } = fake.consumer(consumerKey);
    const { id } = await budgets.create({ name: 'agent', window: { per: 'day', limit: 2 } });
    const { key: apiKey } = await budgets.createKey(id);
    await fake.farebox().charge({ apiKey, tool: 'search', amount: 2 });
    const tomorrow = now() + 86_400_000;
    Date.now = () => tomorrow;
    const { used, window, remaining } = await budgets.get(id);
    assert.deepEqual([used, window?.used, remaining], [2, 0, 2]);
  });
});
