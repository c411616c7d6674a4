/** Approvals: who may ask and answer what, what an answer changes, and that it changes exactly that. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../../src/domain/ids.ts';
import { ApprovalReply, ApprovalsReply } from '../../../src/schemas/approvals.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import {
  ask,
  decide,
  showApproval,
  tryAsk,
  tryDecide,
  untilDecided,
} from '../../support/approval-requests.ts';
import {
  changeBudget,
  closeBudget,
  makeBudget,
  makeKey,
  showBudget,
  spend,
} from '../../support/budget-requests.ts';
import { askHold } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { until, type Server } from '../../support/stack.ts';

describe('approvals', () => {
  const api = openTestApi({ servers: 2 });
  let other: Server;
  let account: TestAccount;
  let key: string;

  before(() => {
    other = api.servers[1] as Server;
  });
  beforeEach(async () => {
    account = await api.createAccount(100);
    key = account.consumerKey;
  });

  /** A budget with these settings and a key for it. */
  const budgetWith = async (settings: object) => {
    const { id } = await makeBudget(api, key, { ...settings });
    return { id, spendKey: (await makeKey(api, key, id)).key };
  };
  const codeOf = async (spendKey: string, amount: number, server: Server = api) => {
    const { status, body } = await spend(server, account, spendKey, amount);
    return status === 201 ? 'paid' : (body as { error: { code: string } }).error.code;
  };

  describe('of a developer', () => {
    it('is required before its first charge of such a budget, and lets it charge from then on', async () => {
      const { id, spendKey } = await budgetWith({ approveDevelopers: true });
      const refused = await spend(api, account, spendKey, 1);
      const { approvalUrl } = (refused.body as { error: { approvalUrl: string } }).error;
      const facts = { budgetId: id, approvalUrl, required: 1, tool: 'search' };
      const { developerId } = account;
      assertError(refused, 403, 'approval_required', undefined, { ...facts, developerId });
      assert.match(approvalUrl, new RegExp(`/console/approvals\\?budget=${id}&developer=dev_`));
      assert.equal((await askHold(api, { ...account, consumerKey: spendKey })).status, 403);

      const asked = await ask(api, account, spendKey, 1, { reason: 'Please.' });
      assert.deepEqual(
        [asked.status, asked.code, asked.budgetId, asked.reason, asked.askedBy],
        ['pending', 'approval_required', id, 'Please.', 'payer'],
      );
      const waiting = untilDecided(other, spendKey, asked.id);
      const decided = await decide(api, key, asked.id, 'always');
      assert.deepEqual([decided.status, decided.decision], ['approved', 'always']);
      assert.equal((await waiting).decision, 'always');
      // Told only when every server has seen it.
      assert.equal(await codeOf(spendKey, 1, other), 'paid');
      assert.deepEqual((await showBudget(api, key, id)).approvedDevelopers, [developerId]);
      await changeBudget(api, key, id, { approvedDevelopers: [] });
      await until(async () => (await codeOf(spendKey, 1, other)) === 'approval_required');
    });

    it('for once lets one charge of many at the same moment pass, or one hold', async () => {
      const { spendKey } = await budgetWith({ approveDevelopers: true });
      const asked = await ask(api, account, spendKey, 1);
      await decide(api, key, asked.id, 'once');
      await untilDecided(api, spendKey, asked.id);
      const codes = await Promise.all(
        Array.from({ length: 12 }, (_, n) => codeOf(spendKey, 1, n % 2 === 0 ? api : other)),
      );
      assert.equal(codes.filter((code) => code === 'paid').length, 1);
      assert.equal(codes.filter((code) => code === 'approval_required').length, 11);
      assert.equal((await showApproval(api, key, asked.id)).used, true);

      const again = await ask(api, account, spendKey, 1);
      await decide(api, key, again.id, 'once');
      await untilDecided(api, spendKey, again.id);
      const held = await askHold(api, { ...account, consumerKey: spendKey }, { amount: 1 });
      assert.equal(held.status, 201);
      assert.equal(await codeOf(spendKey, 1), 'approval_required');
    });
  });

  describe('of a limit', () => {
    it('for once lets exactly one of many calls pass it, and counts it', async () => {
      const { id, spendKey } = await budgetWith({ limit: 2, window: { per: 'day', limit: 2 } });
      assert.equal(await codeOf(spendKey, 2), 'paid');
      const asked = await ask(api, account, spendKey, 1.5);
      assert.deepEqual([asked.code, asked.scope, asked.limit], ['spend_limit_reached', 'total', 2]);
      await decide(api, key, asked.id, 'once');
      // The limit of the window refuses, too.
      await untilDecided(api, spendKey, asked.id);
      assert.equal(await codeOf(spendKey, 1.5), 'spend_limit_reached');
      const ofWindow = await ask(api, account, spendKey, 1.5);
      assert.deepEqual([ofWindow.scope, ofWindow.limit], ['window', 2]);
      await decide(api, key, ofWindow.id, 'once');
      assert.equal(await codeOf(spendKey, 1.500001), 'spend_limit_reached');
      assert.equal((await tryAsk(api, account, spendKey, 1.5)).status, 200, 'it is still unused');
      const codes = await Promise.all(
        Array.from({ length: 12 }, (_, n) => codeOf(spendKey, 1.5, n % 2 === 0 ? api : other)),
      );
      assert.deepEqual(codes.filter((code) => code === 'paid').length, 1);
      const { used, remaining, limit } = await showBudget(api, key, id);
      assert.deepEqual([used, remaining, limit], [3.5, 0, 2]);
    });

    it('for once that is larger stays for the call that needs it', async () => {
      const { spendKey } = await budgetWith({ limit: 1 });
      for (const amount of [10, 3]) {
        await decide(api, key, (await ask(api, account, spendKey, amount)).id, 'once');
      }
      await until(async () => (await codeOf(spendKey, 3)) === 'paid');
      assert.equal(await codeOf(spendKey, 10), 'paid');
      assert.equal(await codeOf(spendKey, 3), 'spend_limit_reached');
    });

    it('for once is for its key, tool and developer, and for its budget alone', async () => {
      const root = await makeBudget(api, key, { limit: 1 });
      const leaf = await makeBudget(api, key, { parentId: root.id, limit: 0.5 });
      const mine = (await makeKey(api, key, leaf.id)).key;
      const sibling = (await makeKey(api, key, leaf.id)).key;
      const asked = await ask(api, account, mine, 0.75);
      assert.equal(asked.budgetId, leaf.id);
      await decide(api, key, asked.id, 'once');
      assert.equal(await codeOf(sibling, 0.75), 'spend_limit_reached');
      const elsewhere = await spend(api, account, mine, 0.75, { tool: 'fetch' });
      assert.equal(elsewhere.status, 402);
      assert.equal(await codeOf(mine, 0.75), 'paid');
      // The root has no room for another one, and it is the one that is named.
      const second = await ask(api, account, mine, 0.7);
      assert.equal(second.budgetId, root.id);
      await decide(api, key, second.id, 'once');
      const { error } = (await spend(api, account, mine, 0.7)).body as {
        error: { budgetId: string };
      };
      assert.equal(error.budgetId, leaf.id);
      assert.equal((await showApproval(api, key, second.id)).used, false);
      const third = await ask(api, account, mine, 0.7);
      assert.equal(third.budgetId, leaf.id);
      await decide(api, key, third.id, 'once');
      assert.equal(await codeOf(mine, 0.7), 'paid');
      assert.equal((await showApproval(api, key, second.id)).used, true);
    });

    it('raises it permanently: just enough, or to the limit that the owner sets', async () => {
      const { id, spendKey } = await budgetWith({ limit: 1, window: { per: 'day', limit: 3 } });
      const always = await decide(api, key, (await ask(api, account, spendKey, 2)).id, 'always');
      assert.equal(always.raisedTo, 2);
      assert.equal(await codeOf(spendKey, 2), 'paid');
      const asked = await ask(api, account, spendKey, 1);
      const answer = await tryDecide(api, key, asked.id, { decision: 'raise', limit: 2 });
      assertError(answer, 400, 'invalid_amount', 'limit');
      assert.equal((await decide(api, key, asked.id, 'raise', { limit: 50 })).raisedTo, 50);
      assert.equal((await showBudget(api, key, id)).limit, 50);
      const ofWindow = await ask(api, account, spendKey, 1.5);
      assert.equal(ofWindow.scope, 'window');
      await decide(api, key, ofWindow.id, 'raise', { limit: '4.25' });
      assert.equal((await showBudget(api, key, id)).window?.limit, 4.25);
      assert.equal(await codeOf(spendKey, 1.5), 'paid');
    });

    it('of one call is lifted once or permanently, on every server', async () => {
      const { id, spendKey } = await budgetWith({ maxPerCall: 1 });
      const asked = await ask(api, account, spendKey, 2);
      assert.equal(asked.scope, 'per_call');
      await decide(api, key, asked.id, 'once');
      await untilDecided(api, spendKey, asked.id);
      const codes = await Promise.all([1, 2, 3].map(() => codeOf(spendKey, 2, other)));
      assert.deepEqual(codes.toSorted(), ['paid', 'spend_limit_reached', 'spend_limit_reached']);
      const again = await ask(api, account, spendKey, 2);
      await decide(api, key, again.id, 'always');
      await untilDecided(api, spendKey, again.id);
      assert.equal(await codeOf(spendKey, 2, other), 'paid');
      assert.equal((await showBudget(api, key, id)).maxPerCall, 2);
    });

    it('has the page where the owner can raise it in the refusal', async () => {
      const { id, spendKey } = await budgetWith({ limit: 1 });
      const answer = await spend(api, account, spendKey, 2);
      const { raiseUrl } = (answer.body as { error: { raiseUrl: string } }).error;
      assert.equal(raiseUrl, `${api.url}/console/approvals?budget=${id}&scope=total`);
    });

    it('ends by itself when the owner changes the budget', async () => {
      const { id, spendKey } = await budgetWith({ limit: 1 });
      const asked = await ask(api, account, spendKey, 2);
      const waiting = untilDecided(api, spendKey, asked.id);
      await changeBudget(api, key, id, { limit: 5 });
      const { status, decision } = await waiting;
      assert.deepEqual([status, decision], ['approved', 'resolved']);
    });
  });

  it('denied tells the waiter so, and the same question gets the same answer', async () => {
    const { spendKey } = await budgetWith({ limit: 1 });
    const asked = await ask(api, account, spendKey, 2);
    const waiting = untilDecided(other, spendKey, asked.id);
    await decide(api, key, asked.id, 'deny');
    assert.equal((await waiting).status, 'denied');
    assert.equal(await codeOf(spendKey, 2), 'spend_limit_reached');
    const again = bodyOf(await tryAsk(api, account, spendKey, 2), 200, ApprovalReply);
    assert.deepEqual([again.id, again.status], [asked.id, 'denied']);
  });

  describe('a question', () => {
    it('is asked once, even when it comes many times at the same moment', async () => {
      const { spendKey } = await budgetWith({ limit: 1 });
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          tryAsk(n % 2 === 0 ? api : other, account, spendKey, 2),
        ),
      );
      const ids = new Set(answers.map(({ body }) => (body as { id: string }).id));
      assert.equal(ids.size, 1);
      assert.equal(answers.filter(({ status }) => status === 201).length, 1);
    });

    it('is about what refuses the call, which the service finds out itself', async () => {
      const { id, spendKey } = await budgetWith({ limit: 1, tools: ['search'] });
      assertError(await tryAsk(api, account, spendKey, 0.5), 409, 'approval_not_needed');
      assertError(
        await tryAsk(api, account, spendKey, 2, { tool: 'fetch' }),
        403,
        'tool_not_allowed',
        'tool',
        { budgetId: id },
      );
    });

    it('tells the holder of a spend key what its own budget is called, and nothing of one above', async () => {
      const root = await makeBudget(api, key, { name: 'above', limit: 1, mayDelegate: true });
      const leaf = await makeBudget(api, key, { name: 'own', parentId: root.id, maxPerCall: 5 });
      const [upper, lower] = [await makeKey(api, key, root.id), await makeKey(api, key, leaf.id)];
      for (const [amount, own, budgetId] of [
        [2, null, root.id],
        [6, 'own', leaf.id],
      ] as const) {
        if (amount === 6) await changeBudget(api, key, root.id, { limit: 100 });
        const asked = await ask(api, account, lower.key, amount);
        assert.deepEqual([asked.budgetName, asked.budgetId], [own, budgetId]);
        const listed = await call(api, 'GET', '/v1/approvals', { key: lower.key });
        const [newest] = bodyOf(listed, 200, ApprovalsReply).approvals;
        const seen = await showApproval(api, lower.key, asked.id);
        assert.deepEqual([newest?.budgetName, seen.budgetName], [own, own]);
        const name = amount === 6 ? 'own' : 'above';
        assert.equal((await showApproval(api, key, asked.id)).budgetName, name);
        if (own) assert.equal((await showApproval(api, upper.key, asked.id)).budgetName, own);
      }
    });

    it('comes from the developer in the name of a key that it was given, and it sees the answer', async () => {
      const { spendKey } = await budgetWith({ limit: 1 });
      const body = { apiKey: spendKey, tool: 'search', amount: 2 };
      const asked = bodyOf(
        await call(api, 'POST', '/v1/approvals', { key: account.developerKey, body }),
        201,
        ApprovalReply,
      );
      assert.deepEqual([asked.askedBy, asked.budgetName], ['developer', null]);
      assert.deepEqual([asked.keyId, asked.keyName], [null, null]);
      const stranger = await api.createAccount(1);
      const foreign = await call(api, 'GET', `/v1/approvals/${asked.id}`, {
        key: stranger.developerKey,
      });
      assertError(foreign, 404, 'not_found');
      await decide(api, key, asked.id, 'once');
      const seen = await untilDecided(api, account.developerKey, asked.id);
      assert.equal(seen.status, 'approved');
      for (const [by, wrong, param] of [
        [account.developerKey, { ...body, apiKey: 'fare_ck_live_none' }, 'apiKey'],
        [account.developerKey, { tool: 'search', amount: 2 }, 'apiKey'],
      ] as const) {
        const answer = await call(api, 'POST', '/v1/approvals', { key: by, body: wrong });
        assertError(answer, 401, 'invalid_api_key', param);
      }
      assertError(
        await tryAsk(api, account, spendKey, 2, { apiKey: spendKey }),
        400,
        'invalid_request',
        'apiKey',
      );
      assertError(
        await tryAsk(api, account, spendKey, 2, { developerId: `dev_${'0'.repeat(32)}` }),
        404,
        'not_found',
        'developerId',
      );
    });

    it('has bounds: its text, its time, and how many one key may ask', async () => {
      const { spendKey } = await budgetWith({ limit: 1 });
      const wrong: readonly (readonly [object, string])[] = [
        [{ reason: 'x'.repeat(501) }, 'reason'],
        [{ reason: 'two\nlines' }, 'reason'],
        [{ reason: '\u202Eevil' }, 'reason'],
        [{ expiresIn: 59 }, 'expiresIn'],
        [{ expiresIn: 7 * 86_400 + 1 }, 'expiresIn'],
        [{ tool: '' }, 'tool'],
      ];
      for (const [changes, param] of wrong) {
        const answer = await tryAsk(api, account, spendKey, 2, { ...changes });
        assertError(answer, 400, 'invalid_request', param);
      }
      const html = '<img src=x onerror=alert(1)>';
      const asked = await ask(api, account, spendKey, 2, { reason: html, expiresIn: 7 * 86_400 });
      assert.equal(asked.reason, html);
      for (let n = 1; n < 20; n += 1) await ask(api, account, spendKey, 2 + n);
      assertError(await tryAsk(api, account, spendKey, 50), 400, 'too_many_approvals');
      // What was asked already is still answered, and a denial makes no room within the hour.
      assert.equal((await tryAsk(api, account, spendKey, 2)).status, 200);
      await decide(api, key, asked.id, 'deny');
      assertError(await tryAsk(api, account, spendKey, 50), 400, 'too_many_approvals');
    });
  });

  describe('an answer', () => {
    it('is never given by the key that asks, by a sibling, or by a key above without mayDelegate', async () => {
      const root = await makeBudget(api, key, { mayDelegate: true });
      const leaf = await makeBudget(api, key, { parentId: root.id, limit: 1, mayDelegate: true });
      const beside = await makeBudget(api, key, { mayDelegate: true });
      const [asker, sibling, above, foreign] = await Promise.all(
        [leaf.id, leaf.id, root.id, beside.id].map(async (id) => (await makeKey(api, key, id)).key),
      );
      const { id } = await ask(api, account, asker ?? '', 2);
      const answer = { decision: 'always' };
      assertError(await tryDecide(api, asker ?? '', id, answer), 403, 'delegation_not_allowed');
      assertError(await tryDecide(api, sibling ?? '', id, answer), 404, 'not_found');
      assertError(await tryDecide(api, foreign ?? '', id, answer), 404, 'not_found');
      assert.equal((await tryDecide(api, account.developerKey, id, answer)).status, 401);
      const topUp = await tryDecide(api, above ?? '', id, { decision: 'top_up' });
      assertError(topUp, 400, 'invalid_request', 'decision');
      await changeBudget(api, key, root.id, { mayDelegate: false });
      assertError(await tryDecide(api, above ?? '', id, answer), 404, 'not_found');
      await changeBudget(api, key, root.id, { mayDelegate: true });
      assert.equal((await decide(api, above ?? '', id, 'always')).raisedTo, 2);
    });

    it('counts once: the first wins, the same again is the same, another comes too late', async () => {
      const { id: budget, spendKey } = await budgetWith({ limit: 1 });
      const { id } = await ask(api, account, spendKey, 2);
      const answers = await Promise.all(
        [5, 6, 7, 8].map((limit) =>
          tryDecide(limit % 2 === 0 ? api : other, key, id, { decision: 'raise', limit }),
        ),
      );
      assert.equal(answers.filter(({ status }) => status === 200).length, 1);
      const { limit } = await showBudget(api, key, budget);
      assert.equal((await tryDecide(api, key, id, { decision: 'raise', limit })).status, 200);
      assertError(
        await tryDecide(api, key, id, { decision: 'deny' }),
        409,
        'approval_closed',
        undefined,
        { status: 'approved' },
      );
      // The answer was carried out, so its retry is not refused for what happened since.
      await closeBudget(api, key, budget);
      assert.equal((await tryDecide(api, key, id, { decision: 'raise', limit })).status, 200);
    });

    it('comes too late after the expiry, and changes nothing', async () => {
      const { id: budget, spendKey } = await budgetWith({ limit: 1 });
      const { id } = await ask(api, account, spendKey, 2, { expiresIn: 60 });
      await api.sql.query(
        `update farebox.approvals set created_at = created_at - interval '61 seconds',
           expires_at = expires_at - interval '61 seconds' where id = $1`,
        [uuidOf('approval', id)],
      );
      assertError(
        await tryDecide(api, key, id, { decision: 'always' }),
        409,
        'approval_closed',
        undefined,
        { status: 'expired' },
      );
      assert.equal((await showApproval(api, spendKey, id, 5)).status, 'expired');
      assert.equal((await showBudget(api, key, budget)).limit, 1);
    });

    it('must fit the question, and one about an expired budget can only be denied', async () => {
      const { id: budget, spendKey } = await budgetWith({ limit: 1 });
      const { id } = await ask(api, account, spendKey, 2);
      for (const [body, param] of [
        [{ decision: 'raise' }, 'limit'],
        [{ decision: 'top_up' }, 'decision'],
        [{ decision: 'once', limit: 5 }, 'limit'],
        [{ decision: 'maybe' }, 'decision'],
      ] as const) {
        assertError(await tryDecide(api, key, id, body), 400, 'invalid_request', param);
      }
      const perCall = await budgetWith({ maxPerCall: 1 });
      const { id: large } = await ask(api, account, perCall.spendKey, 2);
      const beyond = { decision: 'raise', limit: 1_000_000.01 };
      assertError(await tryDecide(api, key, large, beyond), 400, 'invalid_amount', 'limit');
      await api.sql.query(
        `update farebox.budget_details set expires_at = now() - interval '1 second' where id = $1`,
        [uuidOf('budget', budget)],
      );
      assertError(await tryDecide(api, key, id, { decision: 'once' }), 409, 'budget_closed');
      assert.equal((await decide(api, key, id, 'deny')).status, 'denied');
    });

    it('is marked as a replay when it is sent again', async () => {
      const { spendKey } = await budgetWith({ limit: 1 });
      const { id } = await ask(api, account, spendKey, 2);
      const first = await tryDecide(api, key, id, { decision: 'always' });
      const again = await tryDecide(api, key, id, { decision: 'always' });
      assert.deepEqual([first.status, first.headers.get('idempotency-replayed')], [200, null]);
      assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [200, 'true']);
    });

    it('is in the audit log, with the limit before and after', async () => {
      const { spendKey } = await budgetWith({ limit: 1 });
      const { id } = await ask(api, account, spendKey, 2);
      await decide(api, key, id, 'raise', { limit: 9 });
      const { rows } = await api.sql.query<{ details: Record<string, unknown> }>(
        `select details from farebox.audit_entries where action = 'approval.decided' and subject_id = $1`,
        [uuidOf('approval', id)],
      );
      const { decision, limit_micros: from, raised_to_micros: to } = rows[0]?.details ?? {};
      assert.deepEqual([rows.length, decision, from, to], [1, 'raise', 1_000_000, 9_000_000]);
    });
  });

  it('are listed for the owner by state and budget, newest first', async () => {
    const { id: budget, spendKey } = await budgetWith({ limit: 1 });
    const first = await ask(api, account, spendKey, 2);
    const second = await ask(api, account, spendKey, 3);
    await decide(api, key, first.id, 'deny');
    const list = async (by: string, query = '') =>
      bodyOf(
        await call(api, 'GET', `/v1/approvals${query}`, { key: by }),
        200,
        ApprovalsReply,
      ).approvals.map(({ id }) => id);
    assert.deepEqual(await list(key), [second.id, first.id]);
    assert.deepEqual(await list(key, `?status=pending&budgetId=${budget}`), [second.id]);
    assert.deepEqual(await list(key, '?status=denied'), [first.id]);
    assert.deepEqual(await list(spendKey), [second.id, first.id]);
    const { spendKey: stranger } = await budgetWith({});
    assert.deepEqual(await list(stranger), []);
  });

  describe('waiting', () => {
    it('is refused for longer than a minute', async () => {
      const { spendKey } = await budgetWith({ limit: 1 });
      const { id } = await ask(api, account, spendKey, 2);
      for (const wait of ['10000', '56', '-1', 'x']) {
        const path = `/v1/approvals/${id}?wait=${wait}`;
        const answer = await call(api, 'GET', path, { key: spendKey });
        assertError(answer, 400, 'invalid_request', 'wait');
      }
      assert.equal((await showApproval(api, spendKey, id, 1)).status, 'pending');
    });

    it('by a thousand holds no connection, and ends for all of them', async () => {
      const { spendKey } = await budgetWith({ limit: 1 });
      const { id } = await ask(api, account, spendKey, 2);
      const waiting = Array.from({ length: 1_000 }, () => untilDecided(other, spendKey, id));
      // Every one of them was read before it waits, and reads continue meanwhile.
      await until(async () => {
        const { rowCount } = await api.sql.query(`
          select from pg_stat_activity where datname = current_database()
            and state <> 'idle' and pid <> pg_backend_pid()`);
        return rowCount === 0;
      });
      // Sooner than any of them stops waiting: a connection that it holds is not free.
      const read = () => call(other, 'GET', '/v1/balance', { key });
      await until(async () => (await read()).status === 200, { timeoutMs: 40_000 });
      await decide(api, key, id, 'deny');
      for (const { status } of await Promise.all(waiting)) assert.equal(status, 'denied');
    });
  });
});
