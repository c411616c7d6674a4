/** `farebox budget` and `farebox account keys`, as operators type them. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { kindOfKey } from '../../src/domain/api-keys.ts';
import { uuidOf, wireId } from '../../src/domain/ids.ts';
import { findAccount } from '../../src/store/accounts/accounts.ts';
import { ensureTestAccount } from '../../src/store/accounts/test-accounts.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { postFittingCharges } from '../../src/store/charges/post-charges.ts';
import { postFittingEntries } from '../../src/store/holds/post-hold-entries.ts';
import { makeBudget } from '../../src/store/budgets/change-budgets.ts';
import { UNLIMITED } from '../support/budget-settings.ts';
import { newDraft, RECEIPT_KEY, replayWindow } from '../support/charge-drafts.ts';
import { createTestAccount, type TestAccount } from '../support/accounts.ts';
import { createTestDatabase, farebox, type TestDatabase } from '../support/stack.ts';

type Printed = Readonly<Record<string, string | number | boolean | null>>;

describe('farebox budget and account keys', () => {
  let created: TestDatabase;
  let database: Database;
  let account: TestAccount;
  let env: { readonly env: Readonly<Record<string, string>> };

  before(async () => {
    created = await createTestDatabase();
    env = { env: { DATABASE_URL: created.url } };
    account = await createTestAccount(created.url, 10);
    database = await createDatabase(created.url, { maxPoolSize: 1, onError: () => {} });
  });
  after(async () => {
    await database.end();
    await created.drop();
  });

  async function json(...args: readonly string[]): Promise<Printed[]> {
    const printed = await farebox([...args, '--json'], env);
    const lines = printed.trim().split('\n').filter(Boolean);
    return lines.map((line) => JSON.parse(line) as Printed);
  }
  const one = async (...args: readonly string[]) => (await json(...args))[0] ?? assert.fail();

  async function assertRefused(said: RegExp, ...args: readonly string[]): Promise<void> {
    await assert.rejects(farebox(args, env), (error: Error & { stderr?: string }) => {
      assert.match(error.stderr ?? '', said);
      return true;
    });
  }

  it('makes a tree, shows it indented, changes and closes it', async () => {
    const { email, developerId } = account;
    const root = await one(
      'budget',
      'create',
      email,
      '--name',
      'project',
      '--limit',
      '5',
      '--window',
      'day:2.50',
      '--tools',
      'search, fetch',
      '--developers',
      developerId,
      '--approve-developers',
      '--may-delegate',
    );
    const rootId = String(root['id']);
    assert.deepEqual(
      { ...root, id: '' },
      {
        id: '',
        parentId: null,
        name: 'project',
        status: 'active',
        limit: 5,
        used: 0,
        window: 'day',
        windowLimit: 2.5,
        windowUsed: 0,
        remaining: 2.5,
        maxPerCall: null,
        tools: 'search, fetch',
        developers: developerId,
        approveDevelopers: true,
        mayDelegate: true,
        allowLeases: false,
        maxLease: null,
        expiresAt: null,
      },
    );
    const child = await one(
      'budget',
      'create',
      account.consumerId,
      '--name',
      'agent',
      '--parent',
      rootId,
    );
    const beside = await one('budget', 'create', email, '--name', 'beside');
    const [head, ...rows] = (await farebox(['budget', 'list', email], env)).trim().split('\n');
    assert.match(
      head ?? '',
      /^name +id +status +used +limit +window +windowLimit +windowUsed +remaining$/,
    );
    assert.match(rows[0] ?? '', new RegExp(`^project +${rootId} +active +0 +5 +day +2.5 +0 +2.5$`));
    assert.match(rows[1] ?? '', new RegExp(`^  agent +${String(child['id'])} +active`));
    assert.match(rows[2] ?? '', new RegExp(`^beside +${String(beside['id'])} +active`));
    const set = (...args: string[]) => one('budget', 'set', rootId, ...args);
    const changed = await set('--limit', '20', '--window', 'none', '--tools', 'none');
    assert.deepEqual([changed['limit'], changed['window'], changed['tools']], [20, null, null]);
    assert.equal((await set('--limit', 'none', '--no-may-delegate'))['mayDelegate'], false);
    assert.equal((await set('--no-approve-developers'))['approveDevelopers'], false);
    await one('budget', 'close', rootId);
    const listed = await json('budget', 'list', email);
    assert.deepEqual(
      listed.map(({ status }) => status),
      ['closed', 'closed', 'active'],
    );
    await assertRefused(/closed or expired/, 'budget', 'set', rootId, '--limit', '1');
  });

  it('makes spend keys, rolls and revokes them, and shows what they spent', async () => {
    const budget = await one('budget', 'create', account.email, '--name', 'agent');
    const id = String(budget['id']);
    const key = await one('budget', 'key', 'create', id, '--name', 'session 17');
    assert.equal(kindOfKey('fare', String(key['key'])), 'consumer');
    const { draft, number } = await drafted(String(key['id']));
    const [made] = await postFittingCharges(
      database,
      [draft(1_500_000)],
      RECEIPT_KEY,
      replayWindow(),
    );
    assert.equal(made?.kind, 'posted');
    const place = { ...draft(2_000_000), kind: 'place', seconds: 600 } as const;
    const [held] = await postFittingEntries(database, [place], RECEIPT_KEY, replayWindow());
    assert.equal(held?.kind, 'done');
    assert.ok(number > 0);
    assert.deepEqual(await json('budget', 'usage', id), [
      { tool: 'search', charges: 1, spent: 1.5 },
    ]);
    const [total] = (await farebox(['budget', 'usage', id, '--by', 'key'], env))
      .split('\n')
      .slice(1);
    assert.match(total ?? '', /^total +- +1 +1\.5$/);
    assert.deepEqual(await json('budget', 'usage', id, '--to', '2026-01-01'), []);
    const fresh = await one('budget', 'key', 'roll', String(key['id']), '--overlap', '24h');
    assert.equal(fresh['name'], 'session 17');
    const used = async () => {
      const listed = await json('budget', 'list', account.email);
      return listed.find((each) => each['id'] === id)?.['used'];
    };
    assert.equal(await used(), 3.5);
    await one('budget', 'key', 'revoke', String(key['id']), '--release-holds');
    assert.equal(await used(), 1.5);
    const listed = await json('budget', 'key', 'list', id);
    assert.deepEqual(
      listed.map((each) => [each['id'], each['revokedAt'] !== null]),
      [
        [fresh['id'], false],
        [key['id'], true],
      ],
    );
    const ended = listed.find((each) => each['id'] === key['id']);
    const again = await one('budget', 'key', 'revoke', String(key['id']));
    assert.equal(again['revokedAt'], ended?.['revokedAt']);
    await assertRefused(
      /No active key .*budget key list/,
      'budget',
      'key',
      'roll',
      String(key['id']),
    );
  });

  const keys = (...args: string[]) => one('account', 'keys', account.email, ...args);

  it('makes test keys for a budget of play money', async () => {
    const { email } = await createTestAccount(created.url, 0);
    const live = await findAccount(database, { email });
    assert.ok(live);
    const holder = await ensureTestAccount(database, live.id, 16);
    const made = await makeBudget(database, { ...holder, root: null }, null, UNLIMITED);
    assert.ok(made.kind === 'made', made.kind);
    const key = await one('budget', 'key', 'create', wireId('budget', made.budget.id));
    assert.match(String(key['key']), /^fare_ck_test_/);
    const rolled = await one('budget', 'key', 'roll', String(key['id']));
    assert.match(String(rolled['key']), /^fare_ck_test_/);
  });

  it('closes the keys of an account and limits developers', async () => {
    assert.deepEqual(await keys(), { charge: 'open', developerDayLimit: null });
    await keys('--charge', 'closed');
    const limited = await keys('--developer-day-limit', '5');
    assert.deepEqual(limited, { charge: 'closed', developerDayLimit: 5 });
    const open = await keys('--charge', 'open', '--developer-day-limit', 'none');
    assert.deepEqual(open, { charge: 'open', developerDayLimit: null });
  });

  it('says what is wrong with an argument', async () => {
    const { email } = account;
    const nowhere = `bdg_${'0'.repeat(32)}`;
    const create = (...args: string[]) => ['budget', 'create', email, '--name', 'x', ...args];
    await assertRefused(/1 to 100/, 'budget', 'create', email, '--name', 'x'.repeat(10_240));
    await assertRefused(/printable text/, 'budget', 'create', email, '--name', 'two\u2028lines');
    await assertRefused(
      /printable text/,
      'budget',
      'create',
      email,
      '--tools',
      'search,two\nlines',
    );
    await assertRefused(/day:5/, ...create('--window', 'year:5'));
    await assertRefused(/not a budget of this account/, ...create('--parent', nowhere));
    await assertRefused(/Budget bdg_0+ not found/, 'budget', 'usage', nowhere);
    await assertRefused(/time in the future/, ...create('--expires-at', '2001-01-01'));
    await assertRefused(/time in the future/, ...create('--expires-at', '+020000-01-01'));
  });

  /** Charges by the spend key, as the batcher makes them. */
  async function drafted(keyId: string) {
    const client = new Client({ connectionString: created.url });
    await client.connect();
    const { rows } = await client.query<{
      ledger: number;
      consumerId: string;
      number: number;
      path: number[];
    }>(
      'select ledger, consumer_id as "consumerId", number, path from farebox.spend_keys where id = $1',
      [uuidOf('key', keyId)],
    );
    await client.end();
    const { number, path, ...consumer } = rows[0] ?? assert.fail();
    const draft = (micros: number) => ({ ...newDraft(consumer, micros), spend: { number, path } });
    return { number, draft };
  }
});
