/** An account after a month of use, in every part of the console: for pictures, and for checks of every page. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { Client } from 'pg';
import { uuidFloor, wireId } from '../../src/domain/ids.ts';
import { asMicros } from '../../src/domain/money.ts';
import type { RefusalsReply } from '../../src/schemas/refusals.ts';
import type { ToolsReply } from '../../src/schemas/tools.ts';
import type { TopUpReply } from '../../src/schemas/top-ups.ts';
import { recordExaminations } from '../../src/store/doctor/last-findings.ts';
import { postCharges } from '../../src/store/charges/post-charges.ts';
import { findAccountOfUser } from '../../src/store/console/users.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import type { TestAccount } from '../support/accounts.ts';
import { ask, decide } from '../support/approval-requests.ts';
import { makeBudget, makeKey } from '../support/budget-requests.ts';
import type { ConsoleHarness } from '../support/console.ts';
import { call, charge } from '../support/http.ts';
import { askForTopUp } from '../support/payments.ts';
import { farebox, until } from '../support/stack.ts';

const DAYS = 30;
const TOOLS = [
  { name: 'search', price: 0.02, description: 'Searches the web and returns ten results.' },
  { name: 'summarize_pdf', price: 0.0125, description: 'Summarizes a PDF of up to 200 pages.' },
  { name: 'translate', price: 0.000125, description: 'Translates text, priced per token.' },
  { name: 'generate_image', price: 0.4, description: 'One image of 1024 by 1024 pixels.' },
] as const;

export interface UsedAccount {
  readonly email: string;
  /** As on the wire. */
  readonly accountId: string;
  readonly toolId: string;
  /** The pages outside the console that a link opens, as paths. */
  readonly linked: { readonly topUp: string; readonly approval: string };
}

/** The account is its own developer: what it spends, it earns. */
export async function useForAMonth(harness: ConsoleHarness, email: string): Promise<UsedAccount> {
  // What the audit log says of who made the account.
  process.env['PGAPPNAME'] = 'farebox account create';
  const database = await createDatabase(harness.stack.database.url, {
    maxPoolSize: 1,
    onError: () => {},
  });
  const sql = new Client({
    connectionString: harness.stack.database.url,
    application_name: 'psql',
  });
  await sql.connect();
  try {
    const account = await harness.newAccount(250);
    const month = { harness, database, sql, account, email };
    const accountId = await spendForAMonth(month);
    const topUp = await refuseSome(month);
    await fillOperatorPages(month);
    const approval = await delegate(month);
    const toolId = await findTool(month);
    return { email, accountId, toolId, linked: { topUp, approval } };
  } finally {
    delete process.env['PGAPPNAME'];
    await sql.end();
    await database.end();
  }
}

interface Month {
  readonly harness: ConsoleHarness;
  readonly database: Database;
  readonly sql: Client;
  readonly account: TestAccount;
  readonly email: string;
}

/** Charges of the past: their ids contain the time. */
async function spendForAMonth({ harness, database, sql, account, email }: Month): Promise<string> {
  await sql.query('update farebox.accounts set email = $1 where email = $2', [
    email,
    account.email,
  ]);
  // The money came before it was spent.
  const before = `now() - interval '40 days'`;
  await sql.query(`update farebox.movements set created_at = ${before}`);
  await sql.query(`update farebox.top_ups set created_at = ${before}, completed_at = ${before}`);
  const window = await harness.open();
  await window.enter({ email: email });
  await window.close();
  const { rows } = await sql.query<{ id: string }>('select id from console.users');
  const owner = await findAccountOfUser(database, rows[0]?.id ?? '');
  assert.ok(owner);
  const now = Date.now();
  for (let day = DAYS; day > 0; day -= 1) {
    const drafts = Array.from({ length: 4 + ((day * 7) % 9) }, (_, n) => {
      const tool = TOOLS[(day + n) % TOOLS.length] ?? TOOLS[0];
      const timeMs = now - day * 86_400_000 + n * 1_234_567;
      const random = createHash('sha256').update(`${day}/${n}`).digest('hex');
      return {
        id: uuidFloor(timeMs).slice(0, 24) + random.slice(0, 12),
        ledger: owner.ledger,
        consumerId: owner.consumerId,
        developerId: owner.developerId,
        developerNumber: owner.developerNumber,
        tool: tool.name,
        amountMicros: asMicros(Math.round(tool.price * 1e6) * (1 + ((day * 3 + n) % 4))),
        idempotencyHash: null,
        fingerprint: null,
        metadata: null,
        spend: null,
      };
    });
    await postCharges(database, drafts, 1, { fromId: uuidFloor(0), toId: uuidFloor(now) });
  }
  for (const body of TOOLS) {
    await call(harness.stack.api, 'POST', '/v1/tools', { key: account.developerKey, body });
    await charge(harness.stack.api, account, { tool: body.name, amount: undefined });
  }
  return wireId('account', owner.accountId);
}

async function findTool({ harness, account }: Month): Promise<string> {
  const { body } = await call(harness.stack.api, 'GET', '/v1/tools?name=search', {
    key: account.developerKey,
  });
  return (body as ToolsReply).tools[0]?.id ?? assert.fail();
}

/** Returns the path of the link in a refusal. */
async function refuseSome({ harness, account }: Month): Promise<string> {
  let topUpUrl = '';
  for (const amount of [500, 900, 40_000]) {
    const refused = await charge(harness.stack.api, account, { tool: 'generate_image', amount });
    topUpUrl ||= (refused.body as { error: { topUpUrl: string } }).error.topUpUrl;
  }
  await charge(harness.stack.api, account, { tool: 'translate', apiKey: 'fare_ck_live_none' });
  await charge(harness.stack.api, account, { tool: 'not registered', amount: undefined });
  const refusals = () =>
    call(harness.stack.api, 'GET', '/v1/refusals', { key: account.developerKey });
  await until(async () => ((await refusals()).body as RefusalsReply).refusals.length === 3);
  const { pathname, search } = new URL(topUpUrl);
  return pathname + search;
}

/** An operator's view of an account that tops up from its card, and of something that went wrong. */
async function fillOperatorPages({ harness, database, sql, account, email }: Month): Promise<void> {
  const env = harness.stack;
  await farebox(['account', 'consent', email, '--ceiling', '200'], env);
  await farebox(
    ['account', 'auto-top-up', email, '--threshold', '20', '--amount', '50', '--ceiling', '150'],
    env,
  );
  const { consumerKey: key } = account;
  const asked = { key, body: { amount: 25 } };
  const made = await askForTopUp(harness.stack.api, '/v1/top-up', asked);
  const { topUpId } = made.body as TopUpReply;
  await farebox(['refund', topUpId, '--amount', '10'], env);
  await farebox(['account', 'adjust', email, '1.5', '--reason', 'Goodwill after the outage'], env);
  // Doctor itself would object to a past that was written in a minute.
  const parts = ['schema', 'balances', 'top-ups', 'delivery', 'holds'];
  await recordExaminations(database, parts, []);
  const other = await harness.newAccount(40);
  await sql.query('update farebox.accounts set email = $1 where email = $2', [
    'miguel@example.com',
    other.email,
  ]);
  await sql.query(
    `insert into farebox.differences (top_up_id, kind, processor_micros, ledger_micros, payment_intent_ids)
     values ($1, 'paid_twice', 50000000, 25000000, '{pi_1}')`,
    [topUpId.slice(3)],
  );
  await sql.query(
    `insert into farebox.outbox (topic, subject_id, attempts, created_at, next_attempt_at)
     values ('reversal_reported', $1, 9, now() - interval '40 minutes', now() + interval '1 day')`,
    [topUpId.slice(3)],
  );
}

/** Budgets with keys, questions about them, and a webhook endpoint. Returns the path of the link in the mail. */
async function delegate({ harness, sql, account }: Month): Promise<string> {
  const { api } = harness.stack;
  const { consumerKey: key, developerKey } = account;
  const agent = await makeBudget(api, key, {
    name: 'Claude Code',
    limit: 50,
    window: { per: 'day', limit: 5 },
    maxPerCall: 0.5,
  });
  await makeBudget(api, key, { name: 'Research agents', limit: 200 });
  const spendKey = (await makeKey(api, key, agent.id, { name: 'laptop' })).key;
  for (const tool of ['search', 'translate']) {
    await charge(api, account, { apiKey: spendKey, tool, amount: undefined });
  }
  const earlier = await ask(api, account, spendKey, 0.75, { tool: 'generate_image' });
  await decide(api, key, earlier.id, 'once');
  await ask(api, account, spendKey, 12.5, {
    tool: 'summarize_pdf',
    reason: 'The annual report has 1,200 pages.',
  });
  const body = { url: 'https://hooks.example.com/farebox', description: 'Production' };
  await call(api, 'POST', '/v1/webhook-endpoints', { key: developerKey, body });
  return until(async () => {
    const { rows } = await sql.query<{ path: string | null }>(
      `select substring(body from '/approval\\?link=[^[:space:]]+') as path from console.mails
       order by id desc`,
    );
    return rows.find(({ path }) => path !== null)?.path;
  });
}
