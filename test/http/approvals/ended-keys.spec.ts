/** Requests for approval by spend keys that end before their owner has answered. */
import assert from 'node:assert/strict';
import { readConfig } from '../../../src/config.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import { NewKeyReply } from '../../../src/schemas/keys.ts';
import { ApprovalLinks } from '../../../src/signing/approval-links.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { ask, decide, showApproval, tryDecide } from '../../support/approval-requests.ts';
import {
  closeBudget,
  makeBudget,
  makeKey,
  showBudget,
  spend,
} from '../../support/budget-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { until } from '../../support/stack.ts';

describe('a request for approval by a spend key', () => {
  const api = openTestApi();
  let account: TestAccount;

  before(async () => {
    account = await api.createAccount(100);
  });

  /** About a call for $6.00 by a key of a budget of $5.00. */
  async function asked() {
    const { consumerKey: key } = account;
    const budget = await makeBudget(api, key, { limit: 5 });
    const spendKey = await makeKey(api, key, budget.id);
    const approval = await ask(api, account, spendKey.key, 6);
    return { ...approval, budget: budget.id, keyId: spendKey.id, spendKey: spendKey.key };
  }
  type Asked = Awaited<ReturnType<typeof asked>>;

  async function roll({ keyId }: Asked, overlapSeconds: number): Promise<string> {
    const request = { key: account.consumerKey, body: { overlapSeconds } };
    const rolled = await call(api, 'POST', `/v1/keys/${keyId}/roll`, request);
    return bodyOf(rolled, 201, NewKeyReply).key;
  }

  async function pageOf({ id, expiresAt }: Asked): Promise<string> {
    const links = new ApprovalLinks(readConfig(api.env).masterSecrets, api.url);
    const link = links.urlFor({ id: uuidOf('approval', id) ?? '', expiresAt });
    return (await fetch(link)).text();
  }

  const endings: Readonly<Record<string, (question: Asked) => Promise<unknown>>> = {
    'its key is revoked': ({ keyId }) =>
      call(api, 'POST', `/v1/keys/${keyId}/revoke`, { key: account.consumerKey }),
    'its key expires': ({ keyId }) =>
      api.sql.query('update farebox.spend_keys set expires_at = now() where id = $1', [
        uuidOf('key', keyId),
      ]),
    'its budget is closed': ({ budget }) => closeBudget(api, account.consumerKey, budget),
  };
  for (const [when, end] of Object.entries(endings)) {
    it(`ends when ${when}, and nothing that its owner answers changes the budget`, async () => {
      const { consumerKey: key } = account;
      const question = await asked();
      const waiting = showApproval(api, key, question.id, 50);
      await end(question);
      const { status, decision, decidedAt } = await waiting;
      assert.deepEqual([status, decision], ['expired', null]);
      assert.ok(decidedAt !== null && decidedAt < question.expiresAt, `${decidedAt}`);
      for (const body of [
        { decision: 'once' },
        { decision: 'always' },
        { decision: 'raise', limit: 9 },
        { decision: 'deny' },
      ]) {
        const refused = await tryDecide(api, key, question.id, body);
        assertError(refused, 409, 'approval_closed', undefined, { status: 'expired' });
        const { message } = (refused.body as { error: { message: string } }).error;
        assert.match(message, /^The key that asked can no longer pay, so the approval ended at /);
      }
      assert.equal((await showBudget(api, key, question.budget)).limit, 5);
      assert.match(
        await pageOf(question),
        /The key that asked has ended, or its budget was closed\./,
      );
    });
  }

  it('is decided for the new key when its key is rolled without an overlap', async () => {
    const { consumerKey: key } = account;
    const question = await asked();
    const next = await roll(question, 0);
    assert.equal((await showApproval(api, next, question.id)).status, 'pending');
    await decide(api, key, question.id, 'once');
    await until(async () => (await spend(api, account, next, 6)).status === 201);
    assert.equal((await showApproval(api, next, question.id)).used, true);
  });

  it('that was allowed once allows the call of the new key when its key is rolled without an overlap', async () => {
    const question = await asked();
    await decide(api, account.consumerKey, question.id, 'once');
    const next = await roll(question, 0);
    await until(async () => (await spend(api, account, next, 6)).status === 201);
  });

  it('stays with its key while that key overlaps its successor', async () => {
    const question = await asked();
    await roll(question, 3_600);
    await decide(api, account.consumerKey, question.id, 'once');
    await until(async () => (await spend(api, account, question.spendKey, 6)).status === 201);
  });
});
