/** Each action of the audit log, done as a user or an operator does it, leaves its entry. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { CONSENT_TERMS } from '../../../src/domain/consent-terms.ts';
import { idPattern, type IdKind } from '../../../src/domain/ids.ts';
import { OperatorAuditLogReply } from '../../../src/schemas/audit-log.ts';
import { BudgetsReply } from '../../../src/schemas/budgets.ts';
import { createAccount, type TestAccount } from '../../support/accounts.ts';
import { ask, decide } from '../../support/approval-requests.ts';
import { changeBudget, closeBudget, makeBudget, makeKey } from '../../support/budget-requests.ts';
import { bodyOf, call, charge, type Answer } from '../../support/http.ts';
import { askForTopUp } from '../../support/payments.ts';
import { mailedToken, makeOperator, signIn } from '../../support/sessions.ts';
import { farebox, startStack, until, type Stack } from '../../support/stack.ts';
import { totp } from '../../support/totp.ts';
import { read } from '../../tree/sources.ts';

const PASSWORD = 'correct horse battery';
const TERMS = { termsVersion: CONSENT_TERMS.version };
const SETTINGS = { threshold: 5, amount: 10, ceiling: 20 };

/** These need a device, a card or a bank, and are shown where those are. */
const SHOWN_ELSEWHERE: Readonly<Record<string, string>> = {
  'card.chosen': 'test/http/top-ups/cards.slow.spec.ts',
  'difference.settled': 'test/workflows/top-ups/settled-differences.slow.spec.ts',
  'passkey.added': 'test/console/security.slow.spec.ts',
  'passkey.removed': 'test/console/security.slow.spec.ts',
  'warning.dismissed': 'test/workflows/top-ups/top-up-reversals.slow.spec.ts',
};

interface Action {
  /** What the subject of its entry is, where it has an id on the wire. */
  readonly subject?: IdKind;
  readonly program: string;
  readonly act: () => Promise<unknown>;
}

describe('the audit log', () => {
  let stack: Stack;
  let sql: Client;
  let account: TestAccount;
  let headers: { cookie: string; origin: string };
  let operator: { cookie: string; origin: string };

  before(async () => {
    stack = await startStack({ env: { DEV_MAIL: 'true', ALLOW_PRIVATE_ENDPOINTS: 'true' } });
    sql = new Client({ connectionString: stack.database.url });
    await sql.connect();
    const other = await createAccount(stack.env, 0);
    operator = await sessionOf(other.email);
    await makeOperator(sql, other.email);
  });
  beforeEach(async () => {
    account = await createAccount(stack.env, 20);
    headers = await sessionOf(account.email);
    await sql.query('delete from console.rate_limits');
  });
  after(async () => {
    await sql?.end();
    await stack?.stop();
  });

  async function sessionOf(email: string) {
    const cookie = await signIn(stack.api, stack.database.url, email);
    return { cookie, origin: stack.api.url };
  }
  async function send(path: string, body: object = {}, as: object = headers): Promise<Answer> {
    const method = path.startsWith('/v1/account-keys') ? 'PATCH' : 'POST';
    const answer = await call(stack.api, method, path, { headers: { ...as }, body });
    assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`);
    return answer;
  }
  const made = async (path: string, body: object = {}) =>
    (await send(path, body)).body as Record<string, string>;
  /** Sends no type of its body. */
  async function auth(path: string, body: object): Promise<Record<string, string>> {
    const { body: text } = await send(`/console/auth${path}`, body);
    return (typeof text === 'string' ? JSON.parse(text) : text) as Record<string, string>;
  }
  const run = (...args: string[]) => farebox(args, stack);
  const newKey = async () => (await made('/v1/keys', { kind: 'developer' }))['id'];
  const endpoint = async () =>
    (await made('/v1/webhook-endpoints', { url: 'http://127.0.0.1:9/' }))['id'];
  const consent = () => made('/v1/consent', { ceiling: 30, ...TERMS });

  const listed = async () =>
    bodyOf(await call(stack.api, 'GET', '/v1/budgets', { headers }), 200, BudgetsReply);
  const budget = async () => (await makeBudget(stack.api, account.consumerKey, { limit: 1 })).id;
  async function spendKey(): Promise<string> {
    return (await makeKey(stack.api, account.consumerKey, await budget())).id;
  }
  async function setPassword(): Promise<void> {
    await auth('/request-password-reset', { email: account.email });
    const token = await mailedToken(sql, account.email);
    await auth('/reset-password', { token, newPassword: PASSWORD });
    headers = await sessionOf(account.email);
  }

  const byApi = (act: Action['act'], subject?: IdKind): Action => ({
    act,
    program: 'farebox api',
    ...(subject ? { subject } : {}),
  });
  const byCommand = (command: string, act: Action['act'], subject?: IdKind): Action => ({
    ...byApi(act, subject),
    program: `farebox ${command}`,
  });

  const ACTIONS: Readonly<Record<string, Action>> = {
    'account.created': byCommand('account create', () => opened(), 'account'),
    'account.claimed': byApi(async () => {}),
    'account_keys.changed': byApi(() => send('/v1/account-keys', { charge: 'closed' }), 'account'),
    'approval.decided': byApi(async () => {
      const { key } = await makeKey(stack.api, account.consumerKey, await budget());
      const question = await ask(stack.api, account, key, 2);
      await decide(stack.api, account.consumerKey, question.id, 'deny');
    }, 'approval'),
    'auto_top_up.set': byApi(async () => {
      await consent();
      await send('/v1/auto-top-up', SETTINGS);
    }),
    'auto_top_up.removed': byApi(async () => {
      await consent();
      await send('/v1/auto-top-up', SETTINGS);
      await send('/v1/auto-top-up/off');
    }),
    'balance.adjusted': byCommand(
      'account adjust',
      () => run('account', 'adjust', account.email, '1', '--reason', 'a test'),
      'movement',
    ),
    'balance.opened': byCommand('account create', () => opened('--balance', '3'), 'topUp'),
    'budget.changed': byApi(async () => {
      await changeBudget(stack.api, account.consumerKey, await budget(), { limit: 2 });
    }, 'budget'),
    'budget.closed': byApi(async () => {
      await closeBudget(stack.api, account.consumerKey, await budget());
    }, 'budget'),
    'budget.created': byApi(() => budget(), 'budget'),
    'budget.reopened': byApi(async () => {
      await send('/v1/account-keys', { developerDayLimit: 1 });
      const id = await until(async () => {
        await charge(stack.api, account, { amount: 2 });
        const { budgets } = await listed();
        return budgets.find(({ limitsConsumerKeys }) => limitsConsumerKeys)?.id;
      });
      await send(`/v1/budgets/${id}/close`);
      await send(`/v1/budgets/${id}/reopen`);
    }, 'budget'),
    'consent.changed': byApi(consent, 'account'),
    'key.created': byApi(newKey, 'key'),
    'key.expiry_set': byApi(
      async () => send(`/v1/keys/${await newKey()}/roll`, { overlapSeconds: 60 }),
      'key',
    ),
    'key.revoked': byApi(async () => send(`/v1/keys/${await newKey()}/revoke`), 'key'),
    'operator.acted': byApi(async () => {
      const adjustment = { amount: 2, reason: 'a test' };
      await send(`/v1/operator/accounts/${await accountId()}/adjustments`, adjustment, operator);
    }),
    'operator.changed': byCommand(
      'account promote',
      () => run('account', 'promote', account.email),
      'account',
    ),
    'password.set': byApi(setPassword),
    'refund.requested': byApi(async () => {
      const paid = { amount: 10 };
      const options = { key: account.consumerKey, body: paid };
      const answer = await askForTopUp(stack.api, '/v1/top-up', options);
      const { topUpId } = answer.body as { topUpId: string };
      await send(`/v1/operator/top-ups/${topUpId}/refund`, { reason: 'a test' }, operator);
    }, 'topUpRefund'),
    'session.started': byApi(async () => {}),
    'session.ended': byApi(() => auth('/sign-out', {})),
    'sign_in_link.created': byCommand('account sign-in-link', () =>
      run('account', 'sign-in-link', account.email),
    ),
    'spend_key.created': byApi(spendKey, 'key'),
    'spend_key.expiry_set': byApi(
      async () => send(`/v1/keys/${await spendKey()}/roll`, { overlapSeconds: 60 }),
      'key',
    ),
    'spend_key.revoked': byApi(async () => send(`/v1/keys/${await spendKey()}/revoke`), 'key'),
    'two_factor.changed': byApi(async () => {
      await setPassword();
      const { totpURI = '' } = await auth('/two-factor/enable', { password: PASSWORD });
      const secret = new URL(totpURI).searchParams.get('secret') ?? '';
      await auth('/two-factor/verify-totp', { code: totp(secret) });
    }),
    'webhook_endpoint.created': byApi(endpoint, 'webhookEndpoint'),
    'webhook_endpoint.deleted': byApi(async () => {
      await call(stack.api, 'DELETE', `/v1/webhook-endpoints/${await endpoint()}`, { headers });
    }, 'webhookEndpoint'),
    'webhook_endpoint.secret_rolled': byApi(
      async () => send(`/v1/webhook-endpoints/${await endpoint()}/roll-secret`),
      'webhookEndpoint',
    ),
    'webhook_endpoint.url_changed': byApi(async () => {
      const body = { url: 'http://127.0.0.1:10/' };
      await call(stack.api, 'PATCH', `/v1/webhook-endpoints/${await endpoint()}`, {
        headers,
        body,
      });
    }, 'webhookEndpoint'),
  };

  async function opened(...more: string[]): Promise<void> {
    const email = `opened-${account.email}`;
    await run('account', 'create', '--email', email, ...more);
    account = { ...account, email };
  }
  async function accountId(): Promise<string | undefined> {
    const query = `/v1/operator/accounts?query=${account.email}`;
    const answer = await call(stack.api, 'GET', query, { headers: operator });
    return (answer.body as { accounts: { id: string }[] }).accounts[0]?.id;
  }

  for (const [action, { act, program, subject }] of Object.entries(ACTIONS)) {
    it(`has an entry when it happens: ${action}`, async () => {
      await act();
      const path = `/v1/operator/audit-log?limit=100&accountId=${await accountId()}`;
      const answer = await call(stack.api, 'GET', path, { headers: operator });
      const { entries } = bodyOf(answer, 200, OperatorAuditLogReply);
      const found = entries.filter((entry) => entry.action === action);
      assert.ok(
        found.some((entry) => entry.program === program),
        JSON.stringify(entries.map((entry) => [entry.action, entry.program])),
      );
      if (subject) assert.match(found[0]?.subjectId ?? '', new RegExp(idPattern(subject)));
    });
  }

  it('names the account when a person with sessions and passkeys is deleted', async () => {
    const of = await accountId();
    await sql.query(
      `insert into console.passkeys (user_id, credential_id, public_key, counter, device_type, backed_up)
       select id, id::text, '', 0, 'singleDevice', false from console.users where email = $1`,
      [account.email],
    );
    await sql.query('delete from console.users where email = $1', [account.email]);
    const path = `/v1/operator/audit-log?limit=2&accountId=${of}`;
    const answer = await call(stack.api, 'GET', path, { headers: operator });
    const { entries } = bodyOf(answer, 200, OperatorAuditLogReply);
    assert.deepEqual(entries.map(({ action }) => action).toSorted(), [
      'passkey.removed',
      'session.ended',
    ]);
  });

  it('has a test for each action that a trigger writes', () => {
    const written = read('migrations/schema.sql').matchAll(/audit_change\('([^']+)'/g);
    assert.deepEqual(
      [...new Set([...written].map(([, action = '']) => action))].toSorted(),
      [...Object.keys(ACTIONS), ...Object.keys(SHOWN_ELSEWHERE)].toSorted(),
    );
    for (const [action, path] of Object.entries(SHOWN_ELSEWHERE)) {
      assert.ok(read(path).includes(`'${action}'`), path);
    }
  });

  it('is whole afterwards', () => run('doctor', '--only', 'audit-log'));
});
