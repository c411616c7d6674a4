/** What the audit log says about budgets: each change of what may be spent, and who made it. */
import assert from 'node:assert/strict';
import { AuditLogReply } from '../../../src/schemas/audit-log.ts';
import { KeysReply, NewKeyReply } from '../../../src/schemas/keys.ts';
import type { Database } from '../../../src/store/database.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { ask, decide } from '../../support/approval-requests.ts';
import {
  changeBudget,
  closeBudget,
  longestLists,
  makeBudget,
  makeKey,
} from '../../support/budget-requests.ts';
import { bodyOf, call, charge } from '../../support/http.ts';
import { signIn } from '../../support/sessions.ts';
import { keptPool } from '../../support/kept-pools.ts';
import { until } from '../../support/stack.ts';

/** What an entry has of a list that is too long to be in it. */
interface LongList {
  readonly count: number;
  readonly sha256: string;
  readonly added?: readonly string[];
  readonly addedCount?: number;
  readonly removed?: readonly string[];
  readonly removedCount?: number;
}

function longListIn(details: unknown, name: string): LongList {
  return (details as Readonly<Record<string, LongList>>)[name] ?? assert.fail(name);
}

describe('the audit log of budgets', () => {
  const api = openTestApi();
  let pool: Database;
  let account: TestAccount;
  let key: string;
  let headers: Readonly<Record<string, string>>;
  let byKey: object;

  before(async () => {
    pool = await keptPool(api.databaseUrl);
  });
  beforeEach(async () => {
    account = await api.createAccount(100);
    key = account.consumerKey;
    headers = { cookie: await signIn(api, api.databaseUrl, account.email), origin: api.url };
    const { keys } = bodyOf(await call(api, 'GET', '/v1/keys', { headers }), 200, KeysReply);
    byKey = { kind: 'key', id: keys.find(({ kind }) => kind === 'consumer')?.id };
  });

  async function entries() {
    const answer = await call(api, 'GET', '/v1/audit-log?limit=100', { headers });
    return bodyOf(answer, 200, AuditLogReply).entries;
  }

  /** The entries about budgets and spend keys, oldest first. */
  async function logged() {
    return (await entries())
      .filter(({ action }) => /^(budget|spend_key|approval)/.test(action))
      .map(({ action, subjectId, details }) => ({ action, subjectId, details }))
      .toReversed();
  }

  it('has one entry for a new budget, with all that it allows', async () => {
    const root = await makeBudget(api, key, {
      name: 'Mum’s phone',
      limit: 50,
      window: { per: 'day', limit: 5 },
      maxPerCall: 0.5,
      developers: [account.developerId],
      metadata: { owner: 'Ann' },
    });
    const leaf = await makeBudget(api, key, { parentId: root.id, allowLeases: true, maxLease: 2 });
    const [first, second, ...others] = await logged();
    assert.deepEqual(first, {
      action: 'budget.created',
      subjectId: root.id,
      details: {
        parentId: null,
        limit: 50,
        windowUnit: 'day',
        windowLimit: 5,
        maxPerCall: 0.5,
        allowLeases: false,
        maxLease: null,
        tools: null,
        developers: [account.developerId],
        approveDevelopers: false,
        approvedDevelopers: [],
        mayDelegate: false,
        expiresAt: null,
        by: byKey,
      },
    });
    const { parentId, allowLeases, maxLease } = second?.details ?? {};
    assert.deepEqual(
      { subjectId: second?.subjectId, parentId, allowLeases, maxLease },
      { subjectId: leaf.id, parentId: root.id, allowLeases: true, maxLease: 2 },
    );
    assert.deepEqual(others, []);
  });

  it('has changed limits and the permission of leases with their earlier values', async () => {
    const { id } = await makeBudget(api, key, { limit: 5 });
    await changeBudget(api, key, id, { limit: 7 });
    await changeBudget(api, key, id, { window: { per: 'week', limit: 3 } });
    await changeBudget(api, key, id, { allowLeases: true, maxLease: 1 });
    const [, ...changes] = await logged();
    assert.deepEqual(
      changes.map(({ action, subjectId, details }) => [action, subjectId, details['before']]),
      [
        ['budget.changed', id, { limit: 5 }],
        ['budget.changed', id, { windowUnit: null, windowLimit: null }],
        ['budget.changed', id, { allowLeases: false, maxLease: null }],
      ],
    );
    const { limit, by } = changes[0]?.details ?? {};
    assert.deepEqual({ limit, by }, { limit: 7, by: byKey });
    const { windowUnit, windowLimit } = changes[1]?.details ?? {};
    assert.deepEqual({ windowUnit, windowLimit }, { windowUnit: 'week', windowLimit: 3 });
  });

  it('has of a long list what was added and removed, and never much', async () => {
    const first = longestLists();
    const approved = first.approvedDevelopers.slice(1);
    const { id } = await makeBudget(api, key, { ...first, approvedDevelopers: approved });
    const one = first.approvedDevelopers.slice(0, 1);
    await changeBudget(api, key, id, { approvedDevelopers: [...approved, ...one] });
    await changeBudget(api, key, id, longestLists());
    const found = await logged();
    for (const { details } of found) assert.ok(JSON.stringify(details).length < 8_000);
    const [made, grown, swapped] = found.map(({ details }) => details);
    const { count, addedCount, added } = longListIn(made, 'approvedDevelopers');
    assert.deepEqual([count, addedCount], [approved.length, approved.length]);
    assert.deepEqual(added, approved.slice(0, added?.length));
    assert.ok(added && added.length > 10);

    const after = longListIn(grown, 'approvedDevelopers');
    assert.match(after.sha256, /^[0-9a-f]{64}$/);
    const { sha256 } = after;
    assert.deepEqual(after, { count: approved.length + 1, sha256, addedCount: 1, added: one });
    assert.deepEqual(Object.keys(longListIn(grown, 'tools')), ['count', 'sha256']);
    const before = grown?.['before'] as Readonly<Record<string, unknown>>;
    assert.deepEqual(Object.keys(before), ['approvedDevelopers']);
    assert.notEqual(longListIn(before, 'approvedDevelopers').sha256, sha256);

    const { removedCount, removed } = longListIn(swapped?.['before'], 'tools');
    assert.equal(removedCount, 100);
    assert.deepEqual(removed, first.tools.slice(0, removed?.length));
    // Back to a short list, which is whole.
    await changeBudget(api, key, id, { tools: ['search'], approvedDevelopers: [] });
    const last = (await logged()).at(-1)?.details;
    assert.deepEqual([last?.['tools'], last?.['approvedDevelopers']], [['search'], []]);
    assert.equal(longListIn(last?.['before'], 'tools').removedCount, 100);
    assert.deepEqual(await examineLedger(pool, { parts: ['audit-log'] }), []);
  });

  it('is listed in shorter pages where entries are large', async () => {
    const { id } = await makeBudget(api, key);
    for (let round = 0; round < 40; round += 1) {
      await changeBudget(api, key, id, longestLists());
    }
    const numbers: number[] = [];
    let pages = 0;
    for (let next: string | null = ''; next !== null; pages += 1) {
      const query: string = next === '' ? '' : `&cursor=${next}`;
      const answer = await call(api, 'GET', `/v1/audit-log?limit=100${query}`, { headers });
      const page = bodyOf(answer, 200, AuditLogReply);
      numbers.push(...page.entries.map(({ number }) => number));
      next = page.nextCursor;
    }
    assert.ok(pages > 1 && pages < 10, `${pages} pages`);
    assert.ok(numbers.length > 40);
    assert.deepEqual(
      numbers,
      [...new Set(numbers)].toSorted((a, b) => b - a),
    );
  });

  it('has nothing of changes that change no limit, and nothing of charges', async () => {
    const { id } = await makeBudget(api, key, { limit: 5, window: { per: 'hour', limit: 5 } });
    const { key: spendKey } = await makeKey(api, key, id);
    await changeBudget(api, key, id, { name: 'another name', limit: 5, metadata: { a: 1 } });
    const answer = await charge(
      api,
      { ...account, consumerKey: spendKey },
      { amount: 1, tool: 'search' },
    );
    assert.equal(answer.status, 201);
    assert.deepEqual(
      (await logged()).map(({ action }) => action),
      ['budget.created', 'spend_key.created'],
    );
  });

  it('has the end of a budget and of a key, and who ended it: a session, or a key below', async () => {
    const { id } = await makeBudget(api, key, { mayDelegate: true });
    const made = await call(api, 'POST', `/v1/budgets/${id}/keys`, { headers, body: {} });
    const spendKey = bodyOf(made, 201, NewKeyReply);
    const below = await makeBudget(api, spendKey.key, { limit: 1 });
    await closeBudget(api, spendKey.key, below.id);
    await closeBudget(api, spendKey.key, below.id);
    await call(api, 'POST', `/v1/keys/${spendKey.id}/revoke`, { headers, body: {} });
    const session = (await entries()).find(({ action }) => action === 'session.started');
    const bySession = { kind: 'session', id: session?.subjectId };
    const bySpendKey = { kind: 'key', id: spendKey.id };
    assert.deepEqual(
      (await logged()).map(({ action, subjectId, details }) => [action, subjectId, details['by']]),
      [
        ['budget.created', id, byKey],
        ['spend_key.created', spendKey.id, bySession],
        ['budget.created', below.id, bySpendKey],
        ['budget.closed', below.id, bySpendKey],
        ['spend_key.revoked', spendKey.id, bySession],
      ],
    );
  });

  it('has one entry for a new daily limit of all developers, and one for what one developer got', async () => {
    const stranger = await api.createAccount(0);
    const setDayLimit = async (developerDayLimit: number) => {
      const answer = await call(api, 'PATCH', '/v1/account-keys', {
        headers,
        body: { developerDayLimit },
      });
      assert.equal(answer.status, 200);
    };
    await setDayLimit(5);
    for (const by of [account, stranger]) {
      // Keys know of a limit within a second.
      await until(async () => {
        await charge(api, { ...by, consumerKey: key }, { amount: 0.01, tool: 'search' });
        return (await logged()).some(
          ({ action, details }) =>
            action === 'budget.created' && String(details['developers']) === by.developerId,
        );
      });
    }
    const before = (await entries()).length;
    await setDayLimit(3);
    const [newest, ...others] = await entries();
    assert.equal(newest?.action, 'account_keys.changed');
    assert.equal(others.length, before);
    const made = (await logged()).find(({ action }) => action === 'budget.created');
    const budgetId = made?.subjectId ?? '';
    await changeBudget(api, key, budgetId, { window: { per: 'day', limit: 9 } });
    const last = (await logged()).at(-1);
    assert.deepEqual([last?.action, last?.subjectId], ['budget.changed', budgetId]);
    assert.deepEqual(
      [last?.details['windowLimit'], last?.details['before']],
      [9, { windowLimit: 3 }],
    );
    // What all others have, too, and also by setting the limit of all again, which is no new one.
    for (const set of [
      () => changeBudget(api, key, budgetId, { window: { per: 'day', limit: 3 } }),
      () => setDayLimit(3),
    ]) {
      await changeBudget(api, key, budgetId, { window: { per: 'day', limit: 9 } });
      await set();
      const [reset, ...earlier] = (await logged()).toReversed();
      assert.deepEqual(
        [reset?.subjectId, reset?.details['windowLimit'], reset?.details['before']],
        [budgetId, 3, { windowLimit: 9 }],
      );
      assert.deepEqual(earlier[0]?.details['windowLimit'], 9);
    }
  });

  it('has the limit that an answer raised, and who answered', async () => {
    const { id } = await makeBudget(api, key, { limit: 1 });
    const { key: spendKey } = await makeKey(api, key, id);
    const { id: asked } = await ask(api, account, spendKey, 2);
    await decide(api, key, asked, 'raise', { limit: 9 });
    const [changed, decided] = (await logged()).slice(-2);
    assert.deepEqual(changed, {
      action: 'budget.changed',
      subjectId: id,
      details: { limit: 9, windowUnit: null, windowLimit: null, before: { limit: 1 }, by: byKey },
    });
    assert.deepEqual(
      [decided?.action, decided?.subjectId, decided?.details['by']],
      ['approval.decided', asked, byKey],
    );
  });
});
