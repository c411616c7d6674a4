/** The developer's side of the client beyond charging, against the real API. */
import assert from 'node:assert/strict';
import { Farebox, type FareboxError } from '@farebox/client';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { ScriptedService, droppedLine, raised } from './scripted-service.ts';

async function all<Item>(list: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of list) items.push(item);
  return items;
}

describe('client: the developer’s side', () => {
  let api: TestApi;
  let account: TestAccount;
  let farebox: Farebox;

  before(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    account = await api.createAccount(100);
    farebox = new Farebox({ secretKey: account.developerKey, baseUrl: api.url });
  });
  after(() => api?.stop());

  const chargeMany = async (count: number, tool = 'search') => {
    const request = { apiKey: account.consumerKey, tool, amount: '0.01' };
    await Promise.all(Array.from({ length: count }, () => farebox.charge(request)));
  };

  it('lists charges over all pages, newest first, with filters', async () => {
    await chargeMany(7);
    await chargeMany(2, 'other');
    const charges = await all(farebox.charges.list({ limit: 3 }));
    assert.equal(charges.length, 9);
    const ids = charges.map(({ id }) => id);
    assert.deepEqual(ids, ids.toSorted().toReversed());
    assert.equal((await all(farebox.charges.list({ tool: 'other' }))).length, 2);
    assert.deepEqual(await all(farebox.charges.list({ to: '2020-01-01' })), []);
    const page = await farebox.charges.list({ limit: 3 }).page();
    assert.equal(page.charges.length, 3);
    const next = await farebox.charges.list({ limit: 3 }).page(page.nextCursor ?? '');
    assert.deepEqual(
      [...page.charges, ...next.charges].map(({ id }) => id),
      ids.slice(0, 6),
    );
  });

  it('finds its own charges, and no charge of others', async () => {
    await chargeMany(1);
    const [charge] = await all(farebox.charges.list());
    assert.deepEqual(await farebox.charges.get(charge?.id ?? ''), charge);
    const { developerKey } = await api.createAccount(0);
    const other = new Farebox({ secretKey: developerKey, baseUrl: api.url });
    for (const id of [charge?.id ?? '', 'chg_0', '../tools', '']) {
      assert.equal((await raised(other.charges.get(id))).code, 'not_found');
    }
  });

  it('takes no id for another path', async () => {
    for (const id of ['', '.', '..', '../holds', '%2e', '\ud800']) {
      assert.equal((await raised(farebox.holds.get(id))).code, 'hold_not_found', id);
      assert.equal(
        (await raised(farebox.holds.release({ holdId: id }))).code,
        'hold_not_found',
        id,
      );
      assert.equal((await raised(farebox.leases.get(id))).code, 'lease_not_found', id);
      assert.equal((await raised(farebox.webhookEndpoints.test(id))).code, 'not_found', id);
    }
  });

  it('keeps a price list: creates, finds by name, changes, archives', async () => {
    const created = await farebox.tools.create({ name: 'search', price: '0.02' });
    assert.partialDeepStrictEqual(created, { name: 'search', price: 0.02, description: '' });
    const taken = await raised(farebox.tools.create({ name: 'search', price: 1 }));
    assert.deepEqual(
      [taken.code, taken.toolId, taken.outcome],
      ['tool_exists', created.id, 'not_done'],
    );
    const [found] = await all(farebox.tools.list({ name: 'search' }));
    assert.equal(found?.id, created.id);
    const changed = await farebox.tools.update(created.id, { price: 0.03, archived: true });
    assert.deepEqual([changed.price, changed.archived], [0.03, true]);
    assert.deepEqual(await farebox.tools.get(created.id), changed);
    assert.equal((await farebox.tools.update(created.id, { price: null })).price, null);
    assert.deepEqual(await all(farebox.tools.list()), []);
    assert.equal((await all(farebox.tools.list({ archived: true }))).length, 1);
  });

  it('registers a tool once: a request that may have arrived is not sent again', async () => {
    await using lost = await ScriptedService.start(droppedLine);
    const other = new Farebox({ secretKey: account.developerKey, baseUrl: lost.url });
    const error = await raised(other.tools.create({ name: 'search' }));
    assert.deepEqual([error.outcome, lost.seen.length], ['unknown', 1]);
  });

  it('reads earnings, a statement and the top-ups that paid for them', async () => {
    await chargeMany(3);
    const { totalEarnings, byTool, developerId } = await farebox.earnings();
    assert.deepEqual(
      [totalEarnings, byTool, developerId],
      [0.03, { search: 0.03 }, account.developerId],
    );
    const { series = [] } = await farebox.earnings({ from: today(), interval: 'day' });
    assert.equal(series.at(-1)?.earnings, 0.03);
    assert.equal((await farebox.statement(today().slice(0, 7))).closingEarnings, 0.03);
    assert.deepEqual(
      (await all(farebox.topUps.list())).map(({ amount, charged }) => [amount, charged]),
      [[100, 0.03]],
    );
    const error = await raised(farebox.statement('../tools'));
    assert.equal(error.code, 'invalid_request');
  });

  it('gives the request id of the last answer, also of a refusal', async () => {
    assert.equal(farebox.lastRequestId, undefined);
    await farebox.earnings();
    const first = farebox.lastRequestId;
    assert.match(first ?? '', /^req_[0-9a-f]{32}$/);
    const error: FareboxError = await raised(farebox.tools.get('none'));
    assert.notEqual(farebox.lastRequestId, first);
    assert.equal(error.requestId, farebox.lastRequestId);
  });
});

function today(): string {
  return new Date().toISOString().slice(0, 10);
}
