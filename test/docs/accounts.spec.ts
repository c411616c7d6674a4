/** The statements of docs/accounts.md do what the page says: they add up a month of earnings, end requests, and forget an owner. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { readConfig } from '../../src/config.ts';
import { uuidOf } from '../../src/domain/ids.ts';
import { StatementReply } from '../../src/schemas/statements.ts';
import type { TopUpsReply } from '../../src/schemas/top-ups.ts';
import { ApprovalLinks } from '../../src/signing/approval-links.ts';
import { createAccount, createTestAccount, type TestAccount } from '../support/accounts.ts';
import { ask, showApproval } from '../support/approval-requests.ts';
import { proveBooks } from '../support/books.ts';
import { endAll } from '../support/end-all.ts';
import { place } from '../support/hold-requests.ts';
import { bodyOf, call, charge } from '../support/http.ts';
import { askForTopUp, control, openCheckout } from '../support/payments.ts';
import { signIn, signInLink } from '../support/sessions.ts';
import { farebox, startStack, until, type Stack } from '../support/stack.ts';
import { blocksOf } from './pages.ts';

interface Shown {
  readonly balance: number;
  readonly heldByHolds: number;
  readonly heldByDisputes: number;
}

describe('docs/accounts.md', () => {
  let stack: Stack;
  let sql: Client;
  let account: TestAccount;
  let statements: readonly string[];
  let programs: string;

  before(async () => {
    stack = await startStack();
    sql = new Client({ connectionString: stack.database.url });
    await sql.connect();
    account = await createTestAccount(stack.database.url, 20);
    const blocks = await blocksOf('docs/accounts.md');
    programs = blocks
      .filter(({ language }) => language === 'sh')
      .map(({ code }) => code)
      .join('\n');
    statements = blocks.filter(({ language }) => language === 'sql').map(({ code }) => code);
  });
  after(() =>
    endAll(
      () => sql?.end(),
      () => stack?.stop(),
    ),
  );

  it('lists what each developer earned in a month, less refunds, as the statement does', async () => {
    const { body } = await charge(stack.api, account, { amount: 3 });
    const { id } = body as { id: string };
    await charge(stack.api, account, { amount: 0.5 });
    const { developerKey: key } = account;
    await call(stack.api, 'POST', `/v1/charges/${id}/refund`, { key, body: { amount: 1 } });
    const month = new Date().toISOString().slice(0, 7);
    const next = new Date(`${month}-01`);
    next.setUTCMonth(next.getUTCMonth() + 1);
    const query = (statements[0] ?? '')
      .replace('2026-11-01', next.toISOString().slice(0, 10))
      .replace('2026-10-01', `${month}-01`);
    const earned = async () => {
      const { rows } = await sql.query<{ email: string; dollars: string }>(query);
      return rows.map(({ email, dollars }) => [email, Number(dollars)]);
    };
    assert.deepEqual(await earned(), [[account.email, 2.5]], 'before they are added up');
    await farebox(['rollup', 'rebuild'], { env: stack.env });
    assert.deepEqual(await earned(), [[account.email, 2.5]], 'after they are added up');
    const path = `/v1/statements/${month}`;
    const statement = bodyOf(await call(stack.api, 'GET', path, { key }), 200, StatementReply);
    assert.ok('closingEarnings' in statement);
    assert.equal(statement.closingEarnings - statement.openingEarnings, 2.5);
  });

  it('exports every page of the top-ups', async () => {
    const { consumerKey: key } = account;
    for (let amount = 5; amount < 10; amount += 1) await openCheckout(stack.api, account, amount);
    const [, code] = /(TOP_UPS=.*?\ndone)\n/s.exec(programs) ?? [];
    const paged = (code ?? '')
      .replaceAll('http://127.0.0.1:8080', stack.api.url)
      .replaceAll('limit=100', 'limit=2');
    const folder = await mkdtemp(join(tmpdir(), 'farebox-accounts-'));
    const env = { ...process.env, CONSUMER_KEY: key };
    await promisify(execFile)('sh', ['-euc', paged], { cwd: folder, env });
    const lines = (await readFile(join(folder, 'top-ups.jsonl'), 'utf8')).trim().split('\n');
    await rm(folder, { recursive: true });
    const amounts = lines.map((line) =>
      (JSON.parse(line) as TopUpsReply).topUps.map(({ amount }) => amount),
    );
    assert.deepEqual(amounts, [
      [9, 8],
      [7, 6],
      [5, 20],
    ]);
  });

  it('shows what holds and disputes hold, which nobody could return yet', async () => {
    const payer = await createAccount(stack.env, 0);
    const { consumerKey: key } = payer;
    const paid = await askForTopUp(stack.api, '/v1/top-up', { key, body: { amount: 20 } });
    assert.equal(paid.status, 201);
    await place(stack.api, { ...payer, developerKey: account.developerKey }, { amount: 3 });
    const { payments } = (await control(stack.simulator, 'payments')) as {
      payments: readonly { payment_intent: string }[];
    };
    await control(stack.simulator, 'disputes', { payment_intent: payments.at(-1)?.payment_intent });
    await until(async () => {
      const printed = await farebox(['account', 'show', payer.email, '--json'], { env: stack.env });
      const { balance, heldByHolds, heldByDisputes } = JSON.parse(printed) as Shown;
      assert.equal(heldByHolds, 3);
      return balance === 0 && heldByDisputes === 17;
    });
  });

  it('ends the requests for approval of an account, whose links then offer no payment', async () => {
    const payer = await createAccount(stack.env, 0);
    const asked = { ...payer, developerId: account.developerId };
    const { id, expiresAt, code } = await ask(stack.api, asked, payer.consumerKey, 2);
    assert.equal(code, 'insufficient_balance');
    const links = new ApprovalLinks(readConfig(stack.env).masterSecrets, stack.api.url);
    const link = links.urlFor({ id: uuidOf('approval', id) ?? '', expiresAt });
    const page = async () => (await fetch(link)).text();
    assert.match(await page(), /Top up/);
    await sql.query((statements[1] ?? '').replaceAll('you@example.com', payer.email));
    assert.match(await page(), /<h1>Expired<\/h1>/);
    assert.doesNotMatch(await page(), /Top up/);
    assert.equal((await showApproval(stack.api, payer.consumerKey, id)).status, 'expired');
  });

  it('forgets the address and the sign-in of an owner, and leaves the books correct', async () => {
    await signIn(stack.api, stack.database.url, account.email);
    await signInLink(stack.api, stack.database.url, account.email);
    assert.notDeepEqual(await tablesWith(account.email), []);
    await sql.query((statements[2] ?? '').replaceAll('you@example.com', account.email));
    assert.deepEqual(await tablesWith(account.email), []);
    await proveBooks(stack.env);
  });

  async function tablesWith(text: string): Promise<string[]> {
    const { rows: tables } = await sql.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
       where schemaname in ('farebox', 'console') order by 1`,
    );
    const found: string[] = [];
    for (const { name } of tables) {
      const { rows } = await sql.query(`select from ${name} x where strpos(x::text, $1) > 0`, [
        text,
      ]);
      if (rows.length > 0) found.push(name);
    }
    return found;
  }
});
