/**
 * Approvals that the holder of a key and the developer both ask for, and those for which somebody waits whose
 * key ends meanwhile.
 */
import assert from 'node:assert/strict';
import { ASKS_OF_KEY_MAX } from '../../../src/domain/approval.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import { ApprovalWatch } from '../../../src/http/approval-watch.ts';
import { WAITS } from '../../../src/http/fair-shares.ts';
import { ApprovalReply } from '../../../src/schemas/approvals.ts';
import type { ErrorReply } from '../../../src/schemas/errors.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { ask, decide, showApproval, untilDecided } from '../../support/approval-requests.ts';
import { makeBudget, makeKey, spend } from '../../support/budget-requests.ts';
import { askHold } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';

describe('an approval that the holder of the key has asked for', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());

  it('tells the developer who asks the same question the decision, and not what the holder wrote', async () => {
    const owner = await api.createAccount(100);
    const seller = await api.createAccount(0);
    const { id } = await makeBudget(api, owner.consumerKey, { limit: 1 });
    const { key: spendKey } = await makeKey(api, owner.consumerKey, id);
    const asked = await ask(api, seller, spendKey, 2, { reason: 'For my tax return.' });
    const body = { apiKey: spendKey, tool: 'search', amount: 2, reason: 'It is ready.' };
    const same = await call(api, 'POST', '/v1/approvals', { key: seller.developerKey, body });
    const { id: sameId, reason } = bodyOf(same, 200, ApprovalReply);
    assert.deepEqual([sameId, reason], [asked.id, null]);

    const waiting = untilDecided(api, seller.developerKey, asked.id);
    await decide(api, owner.consumerKey, asked.id, 'once');
    const told = await waiting;
    assert.deepEqual([told.decision, told.reason], ['once', null]);
    const { reason: own } = await showApproval(api, spendKey, asked.id);
    assert.equal(own, 'For my tax return.');

    const stranger = await api.createAccount(0);
    const path = `/v1/approvals/${asked.id}`;
    assert.equal((await call(api, 'GET', path, { key: stranger.developerKey })).status, 404);
  });
});

describe('the holder of a spend key', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(100);
  });
  after(() => api?.stop());

  const payments = {
    charge: (spendKey: string, amount: number) => spend(api, account, spendKey, amount),
    hold: (consumerKey: string, amount: number) =>
      askHold(api, { ...account, consumerKey }, { amount }),
  };
  for (const [code, settings, amount] of [
    ['approval_required', { approveDevelopers: true }, 1],
    ['spend_limit_reached', { limit: 1 }, 2],
    ['spend_limit_reached', { maxPerCall: 1 }, 2],
    ['insufficient_balance', {}, 200],
  ] as const) {
    for (const [what, pay] of Object.entries(payments)) {
      const rule = Object.keys(settings).join();
      it(`asks with what a ${what} refused with ${code} tells ${rule}`.trim(), async () => {
        const { id } = await makeBudget(api, account.consumerKey, settings);
        const { key } = await makeKey(api, account.consumerKey, id);
        const { error } = (await pay(key, amount)).body as ErrorReply;
        const { developerId, tool, required } = error;
        assert.deepEqual(
          [error.code, developerId, tool, required],
          [code, account.developerId, 'search', amount],
        );
        const body = { developerId, tool, amount: required };
        const asked = await call(api, 'POST', '/v1/approvals', { key, body });
        assert.equal(bodyOf(asked, 201, ApprovalReply).code, code);
      });
    }
  }
});

describe('a question without an amount', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());

  it("is about the tool's price, and needs an amount once the tool is archived", async () => {
    const owner = await api.createAccount(100);
    const { developerKey: key } = await api.createAccount(0);
    const { id } = await makeBudget(api, owner.consumerKey, { limit: 1 });
    const { key: apiKey } = await makeKey(api, owner.consumerKey, id);
    const registration = { name: 'search', description: '', price: 2 };
    const made = await call(api, 'POST', '/v1/tools', { key, body: registration });
    const tool = (made.body as { id: string }).id;
    const question = { key, body: { apiKey, tool: 'search' } };
    const asked = await call(api, 'POST', '/v1/approvals', question);
    assert.equal(bodyOf(asked, 201, ApprovalReply).amount, 2);
    await call(api, 'PATCH', `/v1/tools/${tool}`, { key, body: { archived: true } });
    await api.changingNothing(async () => {
      const again = await call(api, 'POST', '/v1/approvals', question);
      assertError(again, 400, 'invalid_amount', 'amount');
      const charge = await call(api, 'POST', '/v1/charges', question);
      assertError(charge, 400, 'tool_archived', 'tool');
    });
  });
});

describe('the questions of one developer', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());

  for (const kind of ['consumer key', 'spend key'] as const) {
    it(`leave room for those of the holder and of other developers, by the same ${kind}`, async () => {
      const owner = await api.createAccount(1);
      const [hostile, other] = [await api.createAccount(0), await api.createAccount(0)];
      const { id } = await makeBudget(api, owner.consumerKey, { limit: 1 });
      const spendKey = await makeKey(api, owner.consumerKey, id);
      const apiKey = kind === 'spend key' ? spendKey.key : owner.consumerKey;
      const askBy = async (developer: TestAccount, amount: number) => {
        const body = { apiKey, tool: 'search', amount };
        const key = developer.developerKey;
        return (await call(api, 'POST', '/v1/approvals', { key, body })).status;
      };
      const statuses: number[] = [];
      for (let asked = 0; asked <= ASKS_OF_KEY_MAX; asked += 1) {
        statuses.push(await askBy(hostile, 10 + asked));
      }
      const made = Array.from({ length: ASKS_OF_KEY_MAX }, () => 201);
      assert.deepEqual(statuses, [...made, 400]);
      assert.equal((await ask(api, owner, apiKey, 5)).status, 'pending');
      assert.equal(await askBy(other, 10), 201);
    });
  }
});

describe('waiting for an approval', () => {
  let api: TestApi;
  let database: Database;
  let watch: ApprovalWatch;

  before(async () => {
    api = await startTestApi();
    database = await createDatabase(api.databaseUrl, { maxPoolSize: 2, onError: () => {} });
    watch = new ApprovalWatch(database, (error) => assert.fail(String(error)));
  });
  after(async () => {
    watch?.stop();
    await database?.end();
    await api?.stop();
  });

  it('in a queue ends with the key, also in the share of the account', async () => {
    const owner = await api.createAccount(100);
    const budget = await makeBudget(api, owner.consumerKey, { limit: 1 });
    const spendKey = await makeKey(api, owner.consumerKey, budget.id);
    const asked = await ask(api, owner, spendKey.key, 2);
    const path = `/v1/approvals/${asked.id}`;
    await api.sql.query('begin');
    await api.sql.query('lock table farebox.approvals in access exclusive mode');
    const key = owner.consumerKey;
    const first = Array.from({ length: WAITS.weightMax }, () => call(api, 'GET', path, { key }));
    const queued = call(api, 'GET', `${path}?wait=50`, { key: spendKey.key });
    // The key is in memory, and a process learns of the change later, so the request already waits.
    const revoked = await call(api, 'POST', `/v1/keys/${spendKey.id}/revoke`, { key });
    assert.equal(revoked.status, 200);
    await api.sql.query('commit');
    for (const { status } of await Promise.all(first)) assert.equal(status, 200);
    assertError(await queued, 401, 'invalid_api_key');
  });

  it('tells the decision to a key that works, and not to one that was revoked meanwhile', async () => {
    const owner = await api.createAccount(100);
    const budget = await makeBudget(api, owner.consumerKey, { limit: 1 });
    const spendKey = await makeKey(api, owner.consumerKey, budget.id);
    const other = await makeKey(api, owner.consumerKey, budget.id);
    const asked = await ask(api, owner, other.key, 2);
    const id = uuidOf('approval', asked.id) ?? '';
    const waitWith = (wire: string) => {
      const credential = { kind: 'key', id: uuidOf('key', wire) ?? '' } as const;
      return watch.wait(id, 'an account', credential, 50_000, { isAbandoned: () => false });
    };
    const waiting = [waitWith(spendKey.id), waitWith(other.id)];
    const path = `/v1/keys/${spendKey.id}/revoke`;
    const revoked = await call(api, 'POST', path, { key: owner.consumerKey });
    assert.equal(revoked.status, 200);
    await decide(api, owner.consumerKey, asked.id, 'deny');
    const told = await Promise.all(waiting);
    assert.deepEqual(
      told.map((approval) => approval?.decision),
      [undefined, 'deny'],
    );
  });

  it('ends a second after the decision can be seen, although its commit took long', async () => {
    const owner = await api.createAccount(100);
    const budget = await makeBudget(api, owner.consumerKey, { limit: 1 });
    const spendKey = await makeKey(api, owner.consumerKey, budget.id);
    const asked = await ask(api, owner, spendKey.key, 2);
    const id = uuidOf('approval', asked.id) ?? '';
    const credential = { kind: 'key', id: uuidOf('key', spendKey.id) ?? '' } as const;
    const early = watch.wait(id, 'an account', credential, 50_000, { isAbandoned: () => false });
    await api.sql.query(
      `update farebox.approvals set status = 'approved', decision = 'once', decided_at = now() - interval '5 s'
       where id = $1`,
      [id],
    );
    const committedAt = performance.now();
    const toldAfter = async (waiting: Promise<{ readonly decision: unknown } | undefined>) => {
      assert.equal((await waiting)?.decision, 'once');
      return performance.now() - committedAt;
    };
    const late = showApproval(api, spendKey.key, asked.id, 50);
    const tookMs = await Promise.all([toldAfter(early), toldAfter(late)]);
    assert.ok(Math.min(...tookMs) >= 1_000, tookMs.join(', '));
  });
});
