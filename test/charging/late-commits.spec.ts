/**
 * Changes whose transaction took an hour, as when its commit waited for a standby: memory heeds them once
 * they can be seen. The hour is one by which the time of each answer is put forward.
 */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { Client } from 'pg';
import { BudgetRulesCache } from '../../src/charging/budget-rules.ts';
import { createKeyCache } from '../../src/charging/find-key-owner.ts';
import { RecentChanges } from '../../src/charging/recent-changes.ts';
import { ToolPrices } from '../../src/charging/tool-prices.ts';
import { asMicros } from '../../src/domain/money.ts';
import { findKeyOwners } from '../../src/store/accounts/api-keys.ts';
import type { Database } from '../../src/store/database.ts';
import { findRecentChanges } from '../../src/store/recent-changes.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { makeBudget, makeKey } from '../support/budget-requests.ts';
import { call } from '../support/http.ts';
import { keptPool } from '../support/kept-pools.ts';
import { until } from '../support/stack.ts';

describe('a change whose transaction took an hour', () => {
  let api: TestApi;
  let database: Database;
  let account: TestAccount;
  let spendKey: string;
  let slow: Client;
  let changes: RecentChanges;
  let answers = 0;

  before(async () => {
    api = await startTestApi();
    database = await keptPool(api.databaseUrl);
  });
  beforeEach(async () => {
    account = await api.createAccount(10);
    const { developerKey: key, consumerKey } = account;
    const { id } = await makeBudget(api, consumerKey, { limit: 10 });
    ({ key: spendKey } = await makeKey(api, consumerKey, id));
    const registration = { name: 'search', description: '', price: 1 };
    const { status } = await call(api, 'POST', '/v1/tools', { key, body: registration });
    assert.equal(status, 201);
    slow = new Client({ connectionString: api.databaseUrl });
    await slow.connect();
    changes = new RecentChanges(
      async (since) => {
        const answer = await findRecentChanges(database, since);
        answers += 1;
        return { ...answer, at: new Date(Date.parse(answer.at) + 3_600_000).toISOString() };
      },
      (error) => assert.fail(error as Error),
    );
  });
  afterEach(async () => {
    await changes.stop();
    await slow.end();
  });
  after(() => api.stop());

  /** Ends the transaction after memory has read the rows, and has asked for changes once more. */
  async function changeSlowly(
    change: string,
    value: string,
    read: () => Promise<unknown>,
  ): Promise<void> {
    await slow.query('begin');
    const { rowCount } = await slow.query(change, [value]);
    assert.equal(rowCount, 1);
    await changes.start();
    const asked = answers;
    assert.ok(await read());
    await until(() => answers > asked + 1, { intervalMs: 5 });
    await slow.query('commit');
  }

  it('ends a key', async () => {
    const keys = createKeyCache(database, changes);
    const hashed = hash('sha256', account.consumerKey);
    await changeSlowly(
      `update farebox.api_keys set revoked_at = now(), changed_at = now() - interval '1 hour'
       where hash = decode($1, 'hex')`,
      hashed,
      () => keys.load(hashed),
    );
    await until(() => keys.peek(hashed) === undefined);
    assert.equal(await keys.load(hashed), undefined);
  });

  it('ends a spend key', async () => {
    const keys = createKeyCache(database, changes);
    const hashed = hash('sha256', spendKey);
    await changeSlowly(
      `update farebox.spend_keys set revoked_at = now(), changed_at = now() - interval '1 hour'
       where hash = decode($1, 'hex')`,
      hashed,
      () => keys.load(hashed),
    );
    await until(() => keys.peek(hashed) === undefined);
    assert.equal(await keys.load(hashed), undefined);
  });

  it('sets a price', async () => {
    const tools = new ToolPrices(database, changes);
    const [owner] = await findKeyOwners(database, [hash('sha256', account.developerKey)]);
    const developerId = owner?.developerId ?? '';
    const price = () => tools.priceOf(developerId, 'search', undefined);
    await changeSlowly(
      `update farebox.tools set price_micros = 2, changed_at = now() - interval '1 hour'
       where developer_id = $1`,
      developerId,
      async () => price(),
    );
    await until(async () => (await price()) === 2);
  });

  it('limits what a call from a budget may cost', async () => {
    const rules = new BudgetRulesCache(database, changes, { nowMs: () => Date.now() });
    const [payer] = await findKeyOwners(database, [hash('sha256', spendKey)]);
    assert.ok(payer);
    const called = { developerId: payer.developerId, tool: 'search', amountMicros: asMicros(3) };
    const refusal = async () => rules.refusalOf(payer, called);
    await changeSlowly(
      `update farebox.budget_details set max_per_call_micros = 2, changed_at = now() - interval '1 hour'
       where consumer_id = $1`,
      payer.consumerId,
      async () => (await refusal()) === undefined,
    );
    await until(refusal);
    assert.equal((await refusal())?.kind, 'limit_reached');
  });
});
