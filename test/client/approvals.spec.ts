/** Approvals by the client, against the real API: asking, waiting and charging again, and the owner's answers. */
import assert from 'node:assert/strict';
import { Farebox, FareboxConsumer, type FareboxError } from '@farebox/client';
import { paidTool } from '@farebox/client/mcp';
import { FakeFarebox } from '@farebox/client/testing';
import { startTestApi, type TestApi } from '../support/api.ts';
import { testSideOf } from '../support/test-mode.ts';
import type { TestAccount } from '../support/accounts.ts';
import { until } from '../support/stack.ts';
import { raised } from './scripted-service.ts';

interface Refused {
  readonly content: readonly { readonly text: string }[];
  readonly _meta: { readonly 'farebox/error': { readonly raiseUrl: string } };
}

const errorIn = ({ _meta: meta }: Partial<Refused>) => meta?.['farebox/error'];

describe('client: approvals', () => {
  let api: TestApi;
  let account: TestAccount;
  let owner: FareboxConsumer;
  let farebox: Farebox;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(100);
    const { consumerKey, developerKey } = account;
    owner = new FareboxConsumer({ consumerKey, baseUrl: api.url });
    farebox = new Farebox({ secretKey: developerKey, baseUrl: api.url });
  });
  after(() => api.stop());

  const keyFor = async (settings: object) => {
    const { id } = await owner.budgets.create({ name: 'agent', ...settings });
    return (await owner.budgets.createKey(id)).key;
  };
  /** The first question that is pending, once it is there. */
  const asked = (because?: string) =>
    until(async () => {
      const { approvals } = await owner.approvals.list({ status: 'pending' }).page();
      return approvals.find(({ reason }) => because === undefined || reason === because);
    });

  it('are topped up once when the same decision is sent again, unless under a key of its own', async () => {
    const side = await testSideOf(api, api.databaseUrl, account);
    const payer = new FareboxConsumer({ consumerKey: side.consumerKey, baseUrl: api.url });
    const seller = new Farebox({ secretKey: side.developerKey, baseUrl: api.url });
    const call = { apiKey: side.consumerKey, tool: 'search', amount: 500 };
    const { id } = await seller.approvals.ask(call);
    // Less than what is missing, so it stays pending, as while a payment is.
    const decision = { decision: 'top_up', amount: 5 } as const;
    for (let n = 0; n < 2; n += 1) {
      assert.equal((await payer.approvals.decide(id, decision)).status, 'pending');
    }
    const amounts = async () =>
      (await payer.topUps.list().page()).topUps.map(({ amount }) => amount);
    assert.deepEqual(await amounts(), [5]);
    await payer.approvals.decide(id, { ...decision, idempotencyKey: 'another' });
    assert.deepEqual(await amounts(), [5, 5]);
  });

  it('ask, wait and charge again, by each budget that refuses, with one key', async () => {
    const apiKey = await keyFor({ limit: 1, approveDevelopers: true });
    const call = { apiKey, tool: 'search', amount: '1.50', idempotencyKey: 'call-1' };
    const paying = farebox.charge({ ...call, ask: { reason: 'One more.', expiresIn: 600 } });
    const first = await asked();
    assert.deepEqual([first.code, first.reason], ['approval_required', 'One more.']);
    await owner.approvals.decide(first.id, { decision: 'always' });
    const second = await asked();
    assert.equal(second.code, 'spend_limit_reached');
    await owner.approvals.decide(second.id, { decision: 'raise', limit: '20.00' });
    const charge = await paying;
    assert.deepEqual([charge.paid, charge.amount, charge.replayed], [true, 1.5, false]);
    assert.equal((await farebox.charge(call)).id, charge.id);
  });

  it('raise the refusal with the answer when it is no, or none in time', async () => {
    const apiKey = await keyFor({ limit: 1 });
    const call = { apiKey, tool: 'search', amount: 3 };
    const refused = raised(farebox.charge({ ...call, ask: true }));
    const { id } = await asked();
    await owner.approvals.decide(id, { decision: 'deny' });
    const denied = await refused;
    assert.deepEqual(
      [denied.code, denied.approvalId, denied.approvalStatus, denied.outcome],
      ['spend_limit_reached', id, 'denied', 'not_charged'],
    );
    const late = await raised(farebox.charge({ ...call, amount: 4, ask: { timeoutMs: 1 } }));
    assert.deepEqual([late.code, late.approvalStatus], ['spend_limit_reached', 'pending']);
    const again = await raised(owner.approvals.decide(id, { decision: 'once' }));
    assert.deepEqual([again.code, again.outcome], ['approval_closed', 'not_done']);
    const unneeded = await raised(farebox.approvals.ask({ apiKey, tool: 'search', amount: 0.5 }));
    assert.deepEqual([unneeded.code, unneeded.outcome], ['approval_not_needed', 'not_done']);
  });

  it('say in the cause of the refusal why the owner could not be asked', async () => {
    const apiKey = await keyFor({ limit: 1 });
    const ask = { reason: 'x'.repeat(501) };
    const error = await raised(farebox.charge({ apiKey, tool: 'search', amount: 3, ask }));
    const { code, param } = error.cause as FareboxError;
    assert.deepEqual(
      [error.code, code, param],
      ['spend_limit_reached', 'invalid_request', 'reason'],
    );
    assert.match(String(error.toJSON()['cause']), /reason/);
  });

  it('raise soon a refusal that no answer of the owner can lift', async () => {
    const fake = new FakeFarebox();
    const { apiKey } = fake.addConsumer({ balance: 100 });
    // The test mode refuses this amount on demand, though no budget does.
    const charging = fake.farebox().charge({ apiKey, tool: 'search', amount: 0.990403, ask: true });
    assert.equal((await raised(charging)).code, 'spend_limit_reached');
  });

  it('wait through an outage of the service', async () => {
    const apiKey = await keyFor({ limit: 1 });
    let away = 0;
    const agent = new FareboxConsumer({
      consumerKey: apiKey,
      baseUrl: api.url,
      maxRetries: 0,
      fetch: (url, init) => {
        if (!url.includes('wait=') || away > 1) return fetch(url, init);
        away += 1;
        return Promise.reject(new TypeError('fetch failed'));
      },
    });
    const { developerId } = account;
    const { id } = await agent.approvals.ask({ developerId, tool: 'search', amount: 5 });
    const waiting = agent.approvals.wait(id);
    await until(() => away > 1);
    await owner.approvals.decide(id, { decision: 'once' });
    assert.equal((await waiting).status, 'approved');
    assert.equal((await owner.approvals.get(id)).used, false);
  });

  it('let a paid MCP tool ask, wait, and run once when the owner agrees, or not at all', async () => {
    const apiKey = await keyFor({ limit: 1 });
    let runs = 0;
    const reason = 'The report needs it.';
    const tool = paidTool(farebox, { tool: 'search', price: 2, ask: { reason } }, async () => {
      runs += 1;
      return { content: [] };
    });
    const headers = new Headers({ 'x-service-key': apiKey });
    const call = tool as unknown as (input: object, context: object) => Promise<Partial<Refused>>;
    const paying = call({}, { requestInfo: { headers } });
    const first = await asked(reason);
    assert.deepEqual([first.amount, runs], [2, 0]);
    await owner.approvals.decide(first.id, { decision: 'once' });
    assert.equal(errorIn(await paying), undefined);
    assert.equal(runs, 1);
    const refused = call({}, { requestInfo: { headers } });
    await owner.approvals.decide((await asked(reason)).id, { decision: 'deny' });
    assert.match(errorIn(await refused)?.raiseUrl ?? '', /approvals/);
    assert.equal(runs, 1);
  });

  it('are named in the result of a paid MCP tool, with the page for the owner', async () => {
    const apiKey = await keyFor({ limit: 1 });
    const tool = paidTool(farebox, { tool: 'search', price: 2 }, async () => ({ content: [] }));
    const headers = new Headers({ 'x-service-key': apiKey });
    const call = tool as unknown as (input: object, context: object) => Promise<Refused>;
    const result = await call({}, { requestInfo: { headers } });
    const { raiseUrl = '' } = errorIn(result) ?? {};
    assert.match(raiseUrl, /\/console\/approvals\?budget=bdg_[0-9a-f]{32}&scope=total$/);
    assert.ok(result.content[0]?.text.includes(raiseUrl));
  });
});
