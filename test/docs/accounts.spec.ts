/** The statements of docs/accounts.md do what the page says: they add up a month of earnings, and forget an owner. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { StatementReply } from '../../src/schemas/statements.ts';
import { createTestAccount, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { endAll } from '../support/end-all.ts';
import { bodyOf, call, charge } from '../support/http.ts';
import { signIn, signInLink } from '../support/sessions.ts';
import { farebox, startStack, type Stack } from '../support/stack.ts';
import { blocksOf } from './pages.ts';

describe('docs/accounts.md', () => {
  let stack: Stack;
  let sql: Client;
  let account: TestAccount;
  let statements: readonly string[];

  before(async () => {
    stack = await startStack();
    sql = new Client({ connectionString: stack.database.url });
    await sql.connect();
    account = await createTestAccount(stack.database.url, 20);
    const blocks = await blocksOf('docs/accounts.md');
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

  it('forgets the address and the sign-in of an owner, and leaves the books correct', async () => {
    await signIn(stack.api, stack.database.url, account.email);
    await signInLink(stack.api, stack.database.url, account.email);
    assert.notDeepEqual(await tablesWith(account.email), []);
    await sql.query((statements[1] ?? '').replaceAll('you@example.com', account.email));
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
