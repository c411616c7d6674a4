/**
 * Every page with a month of charges, at three widths, in both color schemes: no page slides sideways and the
 * browser reports nothing. `SCREENSHOTS=docs/screenshots` writes the pictures of the documentation.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { Client } from 'pg';
import { uuidFloor } from '../../src/domain/ids.ts';
import { asMicros } from '../../src/domain/money.ts';
import { findAccountOfUser } from '../../src/store/console/users.ts';
import { postCharges } from '../../src/store/charges/post-charges.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import type { TestAccount } from '../support/accounts.ts';
import { openConsole, type ConsoleHarness, type Window } from '../support/console.ts';
import { call, charge } from '../support/http.ts';

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
  ['keys', '/keys'],
  ['developer', '/developer'],
  ['tools', '/developer/tools'],
  ['settings', '/developer/settings'],
  ['security', '/security'],
] as const;

describe('the pages of the console', function () {
  this.timeout(600_000);
  let harness: ConsoleHarness;
  let database: Database;
  let account: TestAccount;

  before(async () => {
    harness = await openConsole();
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
  }

  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [360, 768, 1440]) {
      it(`fit ${width} pixels in ${colorScheme} colors`, async () => {
        const window = await harness.open({ viewport: { width, height: 900 }, colorScheme });
        try {
          await look(window, `sign-in-${width}-${colorScheme}`, '/sign-in');
          await window.enter({ email: EMAIL });
          for (const [name, path] of PAGES) {
            await look(window, `${name}-${width}-${colorScheme}`, path);
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
