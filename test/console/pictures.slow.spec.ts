/**
 * Every page with a month of use, and those of an account with data that breaks layouts, at three widths: no
 * page slides sideways, no table is cut, axe finds nothing, in light and dark colors, Tab reaches every
 * control and shows where it is, the browser reports nothing, and no other host is asked.
 * `SCREENSHOTS=docs/screenshots` writes the pictures of the documentation.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import axe from 'axe-core';
import { Client } from 'pg';
import type { Page } from 'playwright-core';
import { openConsole, type ConsoleHarness, type Window } from '../support/console.ts';
import { makeOperator } from '../support/sessions.ts';
import { until } from '../support/stack.ts';
import { useWithHardData } from './hard-data.ts';
import { useForAMonth, type UsedAccount } from './month-of-use.ts';
import { problemsOfTab } from './tab-order.ts';

const SCHEMES = ['light', 'dark'] as const;
const WIDTHS = [360, 768, 1440] as const;
/** Where axe looks: the layout has the least room there. */
const PHONE = 360;
const HEIGHT = 900;
const EMAIL = 'maya@example.com';
const PAGES = [
  ['sign-in', '/sign-in'],
  ['sign-up', '/sign-up'],
  ['set-password', '/set-password?token=x'],
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
  ['tool', '/developer/tools/:tool'],
  ['top-ups', '/developer/top-ups'],
  ['settings', '/developer/settings'],
  ['webhooks', '/developer/webhooks'],
  ['operator', '/operator'],
  ['operator-accounts', '/operator/accounts?query=m'],
  ['operator-account', '/operator/accounts/:account'],
  ['operator-audit-log', '/operator/audit-log'],
] as const;

/** The pages that show names or amounts of the account. */
const LONG_PAGES = PAGES.filter(([name]) =>
  [
    'balance',
    'usage',
    'statements',
    'budgets',
    'keys',
    'developer',
    'charges',
    'tools',
    'webhooks',
  ].includes(name),
);

/** The pages of an account: Tab has to reach their controls. */
const TABBED: ReadonlySet<string> = new Set([
  'balance',
  'usage',
  'statements',
  'budgets',
  'approvals',
  'keys',
  'audit-log',
  'security',
  'developer',
  'charges',
  'refusals',
  'tools',
  'tool',
  'top-ups',
  'webhooks',
  'settings',
]);

type StorageState = Awaited<ReturnType<Window['context']['storageState']>>;

describe('the pages of the console', () => {
  let harness: ConsoleHarness;
  let used: UsedAccount;
  /** With the cookie of a session. */
  let storageState: StorageState;
  let hard: { readonly storageState: StorageState; readonly tool: string };

  before(async () => {
    harness = await openConsole({ env: { TEMPORAL_UI_URL: 'http://127.0.0.1:8233' } });
    used = await useForAMonth(harness, EMAIL);
    storageState = await sessionOf(used);
    const { account, tool } = await useWithHardData(harness);
    hard = { storageState: await sessionOf(account), tool };
    const sql = new Client({
      connectionString: harness.stack.database.url,
      application_name: 'psql',
    });
    await sql.connect();
    await makeOperator(sql, EMAIL);
    await sql.end();
  });
  after(() => harness?.close());

  async function sessionOf(account: { readonly email: string }): Promise<StorageState> {
    const window = await harness.open();
    await window.enter(account);
    const state = await window.context.storageState();
    await window.close();
    return state;
  }

  const paths = () => [
    ...PAGES.map(
      ([name, path]) =>
        [
          name,
          `/console${path.replace(':account', used.accountId).replace(':tool', used.toolId)}`,
        ] as const,
    ),
    ['top-up-link', used.linked.topUp] as const,
    ['approval-link', used.linked.approval] as const,
    ['errors', '/docs/errors'] as const,
  ];

  // The dark scheme has the same layout: its pictures are made only when they are kept.
  for (const colorScheme of process.env['SCREENSHOTS'] ? SCHEMES : SCHEMES.slice(0, 1)) {
    it(`fit ${WIDTHS.join(', ')} pixels in ${colorScheme} colors, and Tab reaches every control`, async () => {
      await look(paths(), { storageState, colorScheme });
    });

    it(`fit ${WIDTHS.join(', ')} pixels in ${colorScheme} colors with the longest names and the largest amounts`, async () => {
      const pictured = [...LONG_PAGES, ['tool', hard.tool] as const].map(
        ([name, path]) => [`${name}-long`, `/console${path}`] as const,
      );
      await look(pictured, { storageState: hard.storageState, colorScheme });
    });
  }

  interface Look {
    readonly storageState: StorageState;
    readonly colorScheme: 'light' | 'dark';
  }

  /** Each page on a phone first, and then as its window grows: loading it takes longer than a look at it. */
  async function look(
    pictured: readonly (readonly [name: string, path: string])[],
    { storageState: state, colorScheme }: Look,
  ): Promise<void> {
    const window = await harness.open({
      storageState: state,
      viewport: { width: PHONE, height: HEIGHT },
      colorScheme,
    });
    const { page } = window;
    const found: string[] = [];
    try {
      for (const [name, path] of pictured) {
        await resize(page, PHONE);
        await page.goto(harness.stack.api.url + path);
        await settle(page);
        for (const width of WIDTHS) {
          await resize(page, width);
          if (await slides(page)) found.push(`${path} is wider than ${width}`);
          await picture(page, `${name}-${width}-${colorScheme}`);
          for (const table of await cutTables(page)) {
            found.push(`${path}: ${table} is cut at ${width}`);
          }
          if (width !== PHONE) continue;
          for (const problem of await violations(page)) found.push(`${path}: ${problem}`);
        }
        if (!TABBED.has(name)) continue;
        for (const problem of await problemsOfTab(page)) found.push(`${path}: ${problem}`);
      }
      assert.deepEqual(found, []);
      assert.deepEqual(window.problems, []);
      assert.deepEqual([...window.hosts], [harness.stack.api.url]);
    } finally {
      await window.close();
    }
  }
});

/** Resolves when the page has been laid out for the width, and what observes its size has been drawn again. */
async function resize(page: Page, width: number): Promise<void> {
  if (page.viewportSize()?.width === width) return;
  await page.setViewportSize({ width, height: HEIGHT });
  await until(() => page.evaluate<boolean>(`innerWidth === ${width}`));
  await page.evaluate(
    'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
  );
}

async function settle(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.getByLabel('Loading').first().waitFor({ state: 'detached' });
  await page.waitForLoadState('networkidle');
}

function slides(page: Page): Promise<boolean> {
  return page.evaluate('document.documentElement.scrollWidth > window.innerWidth');
}

/** The tables with text that a user has to scroll sideways for. */
function cutTables(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[...document.querySelectorAll('[role=region]:has(table)')]
    .filter((region) => [region, ...region.querySelectorAll('*')].some(
      (each) => each.scrollWidth > each.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(each).overflowX)))
    .map((region) => region.getAttribute('aria-label'))`);
}

/** What axe objects to, and then which colors it objects to in the other scheme. */
async function violations(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  const run = async (options: object) => {
    const found = await page.evaluate<{ id: string; impact: string; nodes: { html: string }[] }[]>(
      `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`,
    );
    return found
      .filter(({ impact }) => ['serious', 'critical', 'moderate'].includes(impact))
      .map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)}`);
  };
  const all = await run({ resultTypes: ['violations'] });
  const isDark = await page.evaluate<boolean>(`matchMedia('(prefers-color-scheme: dark)').matches`);
  const [own, other] = isDark ? (['dark', 'light'] as const) : (['light', 'dark'] as const);
  await page.emulateMedia({ colorScheme: other });
  const shown = () => page.evaluate('document.documentElement.dataset.mantineColorScheme');
  await until(async () => (await shown()) !== own);
  const colors = await run({ runOnly: ['color-contrast'], resultTypes: ['violations'] });
  await page.emulateMedia({ colorScheme: own });
  return [...all, ...colors.map((problem) => `in ${other} colors: ${problem}`)];
}

async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env['SCREENSHOTS'];
  if (folder === undefined) return;
  const { width, height } = page.viewportSize() ?? { width: 0, height: 0 };
  const whole = Math.min(
    await page.evaluate<number>('document.documentElement.scrollHeight'),
    2_400,
  );
  // Elements fixed to the window stay beside the whole page.
  await page.setViewportSize({ width, height: whole });
  await until(() => page.evaluate<boolean>(`innerHeight === ${whole}`));
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await page.setViewportSize({ width, height });
}
