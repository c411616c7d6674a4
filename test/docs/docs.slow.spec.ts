/** The documentation does what it says: its pages are followed, block by block. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAccount } from '../support/accounts.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { runClientReadme } from './client-readme.ts';
import { blocksOf } from './pages.ts';
import { followPage } from './page-run.ts';

const PAGES = [
  'docs/quickstart.md',
  'docs/charging.md',
  'docs/receipts.md',
  'docs/consumers.md',
  'docs/holds.md',
  'docs/budgets.md',
  'docs/approvals.md',
  'docs/leases.md',
  'docs/idempotency.md',
  'docs/test-mode.md',
  'docs/webhooks.md',
  'docs/self-hosting.md',
  'docs/accounts.md',
];
/** The other pages with programs or commands, and why they are not followed here. */
const NOT_FOLLOWED = {
  'docs/operations.md': 'a backup of another PostgreSQL, and containers',
  'docs/python.md': '`npm run test:python` follows it: pip installs packages',
  'docs/stripe.md': 'an account at Stripe',
  'docs/temporal-cloud.md': 'an account at Temporal Cloud',
};
/** A page that cannot be followed is a promise that nobody checks. */
const NOT_RUN_MAX = 0.15;

const PROGRAMS = new Set(['sh', 'js', 'python']);

describe('the documentation', () => {
  // Longer than page-run.ts waits for one block.
  let stack: Stack;
  let folder: string;

  before(async () => {
    // As `npm start` has it.
    stack = await startStack({ env: { ALLOW_PRIVATE_ENDPOINTS: 'true' } });
    folder = await mkdtemp(join(tmpdir(), 'farebox-docs-'));
  });
  after(async () => {
    await stack?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  for (const page of PAGES) {
    it(`does what it says: ${page}`, async () => {
      const account = await createAccount(stack.env, 10);
      await followPage(page, folder, { url: stack.api.url, account, env: stack.env });
    });
  }

  it('has programs in the client’s README that do what they say', async () => {
    await runClientReadme(folder, stack.api.url, stack.env);
  });

  it('has no other page to follow', async () => {
    const names = (await readdir('docs')).filter((name) => name.endsWith('.md'));
    const pages = await Promise.all(
      names.map(async (name) => ({ page: `docs/${name}`, blocks: await blocksOf(`docs/${name}`) })),
    );
    const toFollow = pages
      .filter(({ blocks }) => blocks.some(({ language }) => PROGRAMS.has(language)))
      .map(({ page }) => page);
    assert.deepEqual(toFollow, [...PAGES, ...Object.keys(NOT_FOLLOWED)].toSorted());
  });

  it('has few blocks that are not run, each with its reason', async () => {
    const blocks = (await Promise.all(PAGES.map(blocksOf))).flat();
    const notRun = blocks.filter(({ notRunBecause }) => notRunBecause !== undefined);
    assert.ok(notRun.length <= blocks.length * NOT_RUN_MAX, `${notRun.length} of ${blocks.length}`);
    for (const { notRunBecause } of notRun) assert.match(notRunBecause ?? '', /^\w+ .+/);
  });
});
