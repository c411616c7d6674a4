/** Budgets and spend keys by the client, against the real API. */
import assert from 'node:assert/strict';
import { Farebox, FareboxConsumer, usd } from '@farebox/client';
import { startTestApi, type TestApi } from '../support/api.ts';
import type { TestAccount } from '../support/accounts.ts';
import { until } from '../support/stack.ts';
import { raised } from './scripted-service.ts';

describe('client: budgets', () => {
  let api: TestApi;
  let account: TestAccount;
  let consumer: FareboxConsumer;
  let farebox: Farebox;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(10);
    const { consumerKey, developerKey } = account;
    consumer = new FareboxConsumer({ consumerKey, baseUrl: api.url });
    farebox = new Farebox({ secretKey: developerKey, baseUrl: api.url });
  });
  after(() => api.stop());

  const charged = (apiKey: string) => farebox.charge({ apiKey, tool: 'search', amount: 0.1 });

  it('are made, changed, listed and closed', async () => {
    const root = await consumer.budgets.create({
      name: 'project',
      limit: usd('0.10').times(50),
      window: { per: 'day', limit: '1.50' },
      maxPerCall: 0.5,
    });
    assert.deepEqual(
      [root.limit, root.window?.limit, root.maxPerCall, root.remaining],
      [5, 1.5, 0.5, 1.5],
    );
    const child = await consumer.budgets.create({ name: 'agent', parentId: root.id });
    const open = await consumer.budgets.update(root.id, { limit: null, window: null });
    assert.deepEqual([open.limit, open.window, open.maxPerCall], [null, null, 0.5]);
    const listed: string[] = [];
    for await (const { id } of consumer.budgets.list({ limit: 1 })) listed.push(id);
    assert.deepEqual(listed, [child.id, root.id]);
    const below = await consumer.budgets.list({ parentId: root.id }).page();
    assert.deepEqual(below.budgets, [await consumer.budgets.get(child.id)]);
    assert.equal((await consumer.budgets.close(root.id)).status, 'closed');
    const refused = await raised(consumer.budgets.createKey(child.id));
    assert.deepEqual([refused.code, refused.outcome], ['budget_closed', 'not_done']);
  });

  it('refuse by an error that says which limit, what is left and when it comes back', async () => {
    const { id } = await consumer.budgets.create({
      name: 'agent',
      window: { per: 'hour', limit: 1 },
      tools: ['search'],
    });
    const { key: apiKey } = await consumer.budgets.createKey(id, { name: 'session' });
    await farebox.charge({ apiKey, tool: 'search', amount: 0.75 });
    const refused = await raised(farebox.charge({ apiKey, tool: 'search', amount: 0.5 }));
    const { code, outcome, budgetId, limit, scope, remaining, resetsAt } = refused;
    assert.deepEqual(
      { code, outcome, budgetId, limit, scope, remaining },
      {
        code: 'spend_limit_reached',
        outcome: 'not_charged',
        budgetId: id,
        limit: 1,
        scope: 'window',
        remaining: 0.25,
      },
    );
    assert.ok(Date.parse(resetsAt ?? '') > Date.now());
    const other = await raised(farebox.charge({ apiKey, tool: 'other', amount: 0.1 }));
    assert.deepEqual([other.code, other.budgetId], ['tool_not_allowed', id]);
  });

  it('show what was spent on what, and are made once under an idempotency key', async () => {
    const idempotencyKey = 'one agent';
    const make = () => consumer.budgets.create({ name: 'agent', limit: 2, idempotencyKey });
    const { id } = await make();
    assert.equal((await make()).id, id);
    const { key: apiKey, id: keyId } = await consumer.budgets.createKey(id, { idempotencyKey });
    assert.equal((await consumer.budgets.createKey(id, { idempotencyKey })).key, apiKey);
    for (const tool of ['search', 'fetch', 'search'])
      await farebox.charge({ apiKey, tool, amount: 0.1 });
    const spent: unknown[] = [];
    for await (const each of consumer.budgets.usage(id, { limit: 1 })) spent.push(each);
    assert.deepEqual(spent, [
      { tool: 'fetch', spent: 0.1, charges: 1 },
      { tool: 'search', spent: 0.2, charges: 2 },
    ]);
    const from = new Date().toISOString().slice(0, 10);
    const { total, usage } = await consumer.budgets.usage(id, { by: 'key', from }).page();
    assert.deepEqual([total, usage[0]?.keyId], [{ spent: 0.3, charges: 3 }, keyId]);
    const hold = await farebox.holds.place({ apiKey, tool: 'search', amount: 1 });
    assert.equal((await consumer.budgets.get(id)).used, 1.3);
    assert.equal((await consumer.budgets.close(id, { releaseHolds: true })).used, 0.3);
    assert.equal(
      (await raised(farebox.holds.capture({ holdId: hold.id, amount: 0.5 }))).code,
      'hold_closed',
    );
  });

  it('have keys that are rolled and revoked', async () => {
    const { id } = await consumer.budgets.create({ name: 'agent' });
    const first = await consumer.budgets.createKey(id);
    const roll = { overlapSeconds: 60, idempotencyKey: `roll ${first.id}` };
    const second = await consumer.budgets.rollKey(first.id, roll);
    assert.deepEqual(await consumer.budgets.rollKey(first.id, roll), second);
    assert.equal((await consumer.budgets.revokeKey(second.id)).budgetId, id);
    const keys: string[] = [];
    for await (const each of consumer.budgets.listKeys(id, { limit: 1 })) keys.push(each.id);
    assert.deepEqual(keys, [second.id, first.id]);
    assert.equal((await charged(first.key)).paid, true);
    const ended = async () => (await raised(charged(second.key))).code === 'invalid_api_key';
    await until(ended);
  });

  it('can be split by the holder of a spend key, who reads nothing else', async () => {
    const { id } = await consumer.budgets.create({ name: 'team', limit: 2, mayDelegate: true });
    const { key: consumerKey } = await consumer.budgets.createKey(id);
    const holder = new FareboxConsumer({ consumerKey, baseUrl: api.url });
    const child = await holder.budgets.create({ name: 'agent', limit: 9 });
    assert.deepEqual([child.parentId, child.remaining], [id, 2]);
    assert.equal(
      (await raised(holder.budgets.update(id, { limit: 9 }))).code,
      'delegation_not_allowed',
    );
    assert.equal((await raised(holder.balance())).code, 'invalid_api_key');
    assert.equal((await raised(holder.charges.list().page())).code, 'invalid_api_key');
    assert.equal((await raised(holder.topUp({ amount: 5 }))).code, 'invalid_api_key');
  });
});
