/** A decision that is made, and whose reply then fails: the answer never says that nothing happened. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { TopUpsReply } from '../../../src/schemas/top-ups.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { ask, decide, showApproval, tryDecide } from '../../support/approval-requests.ts';
import { makeBudget, makeKey, showBudget } from '../../support/budget-requests.ts';
import { holdCommits } from '../../support/held-commits.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../../support/http.ts';
import { holdConsumer, waitedTooLong } from '../../support/row-locks.ts';
import { until } from '../../support/stack.ts';
import { testSideOf } from '../../support/test-mode.ts';

describe('a decision whose reply fails', () => {
  let api: TestApi;
  let account: TestAccount;
  let other: Client;

  before(async () => {
    api = await startTestApi();
    other = new Client({ connectionString: api.databaseUrl });
    await other.connect();
  });
  beforeEach(async () => {
    account = await api.createAccount(0);
  });
  after(async () => {
    await other?.end();
    await api?.stop();
  });

  it('is answered from its own transaction', async () => {
    const key = account.consumerKey;
    const budget = await makeBudget(api, key, { limit: 1 });
    const { id } = await ask(api, account, (await makeKey(api, key, budget.id)).key, 2);
    const held = await holdCommits(api.sql, 'update', 'farebox.approvals');
    const deciding = tryDecide(api, key, id, { decision: 'always' });
    await waiting(1);
    // From the commit on, nobody can read the approval.
    await other.query('begin');
    const locked = other.query('lock table farebox.approvals in access exclusive mode');
    await waiting(2);
    await held.release();
    await locked;
    const decided = await deciding;
    await other.query('rollback');
    await held.end();
    assert.equal((await showBudget(api, key, budget.id)).limit, 2);
    assert.equal(decided.status, 200, JSON.stringify(decided.body));
  });

  describe('after the top-up was made', () => {
    let side: TestAccount;
    let id: string;

    beforeEach(async () => {
      side = await testSideOf(api, api.databaseUrl, account);
      id = (await ask(api, side, side.consumerKey, 150)).id;
    });

    it('has an unknown outcome, and the same request finds it out', async () => {
      assertError(await topUpWithoutReply(), 500, 'outcome_unknown');
      assert.deepEqual(await topUps(), [150]);
      assert.equal((await decide(api, side.consumerKey, id, 'top_up')).decision, 'top_up');
      assert.deepEqual(await topUps(), [150]);
    });

    it('finds the same top-up also when the balance has moved meanwhile', async () => {
      await topUpWithoutReply();
      assert.equal((await charge(api, side, { amount: 1 })).status, 201);
      assert.equal((await decide(api, side.consumerKey, id, 'top_up')).status, 'pending');
      assert.deepEqual(await topUps(), [150]);
      // The dollar that is missing now is another request.
      const key = { 'idempotency-key': 'another' };
      const more = await call(api, 'POST', `/v1/approvals/${id}/decide`, {
        key: side.consumerKey,
        headers: key,
        body: { decision: 'top_up' },
      });
      assert.equal(more.status, 200);
      assert.equal((await showApproval(api, side.consumerKey, id)).decision, 'top_up');
    });

    it('does not take the top-up of an older request for its own', async () => {
      const { consumerKey: key } = side;
      const headers = { 'idempotency-key': 'older' };
      await call(api, 'POST', '/v1/top-up', { key, headers, body: { amount: 20 } });
      const later = (await ask(api, side, key, 200)).id;
      const body = { decision: 'top_up' };
      const path = `/v1/approvals/${later}/decide`;
      const answer = await call(api, 'POST', path, { key, headers, body });
      assertError(answer, 422, 'idempotency_key_reused');
    });

    const topUps = async () => {
      const answer = await call(api, 'GET', '/v1/top-up', { key: side.consumerKey });
      return bodyOf(answer, 200, TopUpsReply).topUps.map(({ amount }) => amount);
    };
    /**
     * Nobody can read the approval from the time when the top-up is about to be made. On a busy machine, the decision
     * may wait for longer than it may before that. Then it did nothing, and is made again.
     */
    const topUpWithoutReply = async (): Promise<Answer> => {
      for (;;) {
        const consumer = await holdConsumer(api.databaseUrl, side.consumerId);
        const deciding = tryDecide(api, side.consumerKey, id, { decision: 'top_up' });
        await consumer.waited(1, deciding);
        await other.query('begin');
        await other.query('lock table farebox.approvals in access exclusive mode');
        await consumer.release();
        const answer = await deciding;
        await other.query('rollback');
        if (!waitedTooLong(answer)) return answer;
      }
    };
  });

  /** So many sessions wait for a lock. */
  const waiting = (sessions: number) =>
    until(async () => {
      const { rows } = await api.sql.query<{ count: number }>(`
        select count(*)::int as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'
      `);
      return rows[0]?.count === sessions;
    });
});
