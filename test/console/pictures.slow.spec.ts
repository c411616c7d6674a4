/**
 * Every page with a month of charges, at three widths, in both color schemes: no page slides sideways and the
 * browser reports nothing. `SCREENSHOTS=docs/screenshots` writes the pictures of the documentation.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { Client } from 'pg';
import { uuidFloor, wireId } from '../../src/domain/ids.ts';
import { asMicros } from '../../src/domain/money.ts';
import { findAccountOfUser } from '../../src/store/console/users.ts';
import { recordExaminations } from '../../src/store/audit/examinations.ts';
import { postCharges } from '../../src/store/charges/post-charges.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import type { TestAccount } from '../support/accounts.ts';
import { openConsole, type ConsoleHarness, type Window } from '../support/console.ts';
import type { RefusalsReply } from '../../src/schemas/refusals.ts';
import type { TopUpReply } from '../../src/schemas/top-ups.ts';
import { call, charge } from '../support/http.ts';
import { makeOperator } from '../support/sessions.ts';
import { farebox, until } from '../support/stack.ts';

const SCHEMES = ['light', 'dark'] as const;
const DAYS = 30;
const EMAIL = 'maya@example.com';
const TOOLS = [
  { name: 'search', price: 0.02, description: 'Searches the web and returns ten results.' },
  { name: 'summarize_pdf', price: 0.0125, description: 'Summarizes a PDF of up to 200 pages.' },
  { name: 'translate', price: 0.000125, description: 'Translates text, priced per token.' },
  { name: 'generate_image', price: 0.4, description: 'One image of 1024 by 1024 pixels.' },
] as const;
const PAGES = [
  ['balance', '/balance'],
  ['usage', '/usage'],
  ['statements', '/statements'],
  ['budgets', '/budgets'],
  ['approvals', '/approvals'],
  ['keys', '/keys'],
  ['audit-log', '/audit-log'],
  ['security', '/security'],
  ['developer', '/developer'],
  ['charges', '/developer/charges'],
  ['refusals', '/developer/refusals'],
  ['tools', '/developer/tools'],
  ['top-ups', '/developer/top-ups'],
  ['settings', '/developer/settings'],
  ['webhooks', '/developer/webhooks'],
  ['operator', '/operator'],
  ['operator-accounts', '/operator/accounts?query=m'],
  ['operator-account', '/operator/accounts/:account'],
  ['operator-audit-log', '/operator/audit-log'],
] as const;

const OUTSIDE = [
  ['sign-in', '/sign-in'],
  ['sign-up', '/sign-up'],
  ['set-password', '/set-password?token=x'],
] as const;

describe('the pages of the console', function () {
  this.timeout(600_000);
  let harness: ConsoleHarness;
  let database: Database;
  let account: TestAccount;
  let accountId: string;

  before(async () => {
    harness = await openConsole({ env: { TEMPORAL_UI_URL: 'http://127.0.0.1:8233' } });
    database = await createDatabase(harness.stack.database.url, {
      maxPoolSize: 1,
      onError: () => {},
    });
    account = await harness.newAccount(250);
    await spendForAMonth();
  });
  after(async () => {
    await database?.end();
    await harness?.close();
  });

  /** Charges of the past: their ids contain the time. */
  async function spendForAMonth(): Promise<void> {
    const client = new Client({ connectionString: harness.stack.database.url });
    await client.connect();
    await client.query('update farebox.accounts set email = $1 where email = $2', [
      EMAIL,
      account.email,
    ]);
    // The money came before it was spent.
    const before = `now() - interval '40 days'`;
    await client.query(`update farebox.movements set created_at = ${before}`);
    await client.query(
      `update farebox.top_ups set created_at = ${before}, completed_at = ${before}`,
    );
    const window = await harness.open();
    await window.enter({ email: EMAIL });
    await window.close();
    const { rows } = await client.query<{ id: string }>('select id from console.users');
    await client.end();
    const owner = await findAccountOfUser(database, rows[0]?.id ?? '');
    assert.ok(owner);
    accountId = wireId('account', owner.accountId);
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
    await refuseSome();
    await fillOperatorPages();
  }

  async function asOperator(hasSecondFactor: boolean): Promise<void> {
    const client = new Client({ connectionString: harness.stack.database.url });
    await client.connect();
    await makeOperator(client, EMAIL, hasSecondFactor);
    await client.end();
  }

  async function refuseSome(): Promise<void> {
    for (const amount of [500, 900, 40_000]) {
      await charge(harness.stack.api, account, { tool: 'generate_image', amount });
    }
    await charge(harness.stack.api, account, { tool: 'translate', apiKey: 'fare_ck_live_none' });
    await charge(harness.stack.api, account, { tool: 'not registered', amount: undefined });
    const refusals = () =>
      call(harness.stack.api, 'GET', '/v1/refusals', { key: account.developerKey });
    await until(async () => ((await refusals()).body as RefusalsReply).refusals.length === 3);
  }

  /** An operator's view of an account that tops up from its card, and of something that went wrong. */
  async function fillOperatorPages(): Promise<void> {
    const client = new Client({ connectionString: harness.stack.database.url });
    await client.connect();
    const env = harness.stack;
    await farebox(['account', 'consent', EMAIL, '--ceiling', '200'], env);
    await farebox(
      ['account', 'auto-top-up', EMAIL, '--threshold', '20', '--amount', '50', '--ceiling', '150'],
      env,
    );
    const { consumerKey: key } = account;
    const made = await call(harness.stack.api, 'POST', '/v1/top-up', { key, body: { amount: 25 } });
    const { topUpId } = made.body as TopUpReply;
    await farebox(['refund', topUpId, '--amount', '10'], env);
    await farebox(
      ['account', 'adjust', EMAIL, '1.5', '--reason', 'Goodwill after the outage'],
      env,
    );
    // Doctor itself would object to a past that was written in a minute.
    const parts = ['schema', 'balances', 'top-ups', 'delivery', 'holds'];
    await recordExaminations(database, parts, []);
    const other = await harness.newAccount(40);
    await client.query('update farebox.accounts set email = $1 where email = $2', [
      'miguel@example.com',
      other.email,
    ]);
    await client.query(
      `insert into farebox.differences (top_up_id, kind, processor_micros, ledger_micros, payment_intent_ids)
       values ($1, 'paid_twice', 50000000, 25000000, '{pi_1}')`,
      [topUpId.slice(3)],
    );
    await client.query(
      `insert into farebox.outbox (topic, subject_id, attempts, created_at, next_attempt_at)
       values ('reversal_reported', $1, 9, now() - interval '40 minutes', now() + interval '1 day')`,
      [topUpId.slice(3)],
    );
    await client.end();
  }

  // The dark scheme has the same layout: its pictures are made only when they are kept.
  for (const colorScheme of process.env['SCREENSHOTS'] ? SCHEMES : SCHEMES.slice(0, 1)) {
    for (const width of [360, 768, 1440]) {
      it(`fit ${width} pixels in ${colorScheme} colors`, async () => {
        const window = await harness.open({
          viewport: { width, height: 900 },
          colorScheme,
          reducedMotion: 'reduce',
        });
        try {
          for (const [name, path] of OUTSIDE) {
            await look(window, `${name}-${width}-${colorScheme}`, path);
          }
          // A link does not sign in where a code is asked for.
          await asOperator(false);
          await window.enter({ email: EMAIL });
          await asOperator(true);
          for (const [name, path] of PAGES) {
            const own = path.replace(':account', accountId);
            await look(window, `${name}-${width}-${colorScheme}`, own);
          }
          assert.deepEqual(window.problems, []);
        } finally {
          await window.close();
        }
      });
    }
  }
});

async function look(window: Window, name: string, path: string): Promise<void> {
  const { page } = window;
  await window.go(path);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.getByLabel('Loading').first().waitFor({ state: 'detached' });
  await page.waitForLoadState('networkidle');
  const size = await page.evaluate<{ wide: number; high: number }>(
    '({ wide: document.documentElement.scrollWidth, high: document.documentElement.scrollHeight })',
  );
  const width = page.viewportSize()?.width ?? 0;
  assert.ok(size.wide <= width, `${path} is ${size.wide} wide in ${width}`);
  const folder = process.env['SCREENSHOTS'];
  if (folder === undefined) return;
  // Elements fixed to the window stay beside the whole page.
  await page.setViewportSize({ width, height: Math.min(size.high, 2_400) });
  await page.waitForFunction(`innerHeight === ${Math.min(size.high, 2_400)}`);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await page.setViewportSize({ width, height: 900 });
}
