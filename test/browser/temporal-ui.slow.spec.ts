/**
 * An operator who has only Temporal's web page, in a real browser: finds a stuck or terminated top-up by a query,
 * reads why, and fixes it. `SCREENSHOTS=docs/images` writes the pictures of docs/runbook.md.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { sql } from '../../src/store/database.ts';
import type { TopUp } from '../../src/store/top-ups/top-ups.ts';
import { startBrowser } from '../support/browser.ts';
import { aloneInNamespace, until, type Server } from '../support/stack.ts';
import { openTopUpHarness, type Consumer, type TopUpHarness } from '../support/top-up-harness.ts';

/** The page renders slowly on a busy machine. */
const PAGE_TIMEOUT_MS = 300_000;
/** A dialog blurs its background, which takes a minute on a machine without a graphics card. */
const PLAIN =
  '*, ::backdrop { backdrop-filter: none !important; filter: none !important; transition: none !important }';

describe('the Temporal UI and a top-up', () => {
  let harness: TopUpHarness;
  let worker: Server;
  let browser: Browser;
  let page: Page;
  let consumer: Consumer;

  before(async () => {
    // Its list shows ids as operators see them.
    const alone = await aloneInNamespace();
    [harness, browser] = await Promise.all([
      openTopUpHarness({ ...alone, FIRST_ASK_MS: '3600000' }),
      startBrowser(),
    ]);
    worker = await harness.startWorker();
  });
  beforeEach(async () => {
    consumer = await harness.newConsumer();
    page = await browser.newPage({ viewport: { width: 1280, height: 840 } });
    page.setDefaultTimeout(PAGE_TIMEOUT_MS);
  });
  afterEach(() => page?.close());
  after(async () => {
    await browser?.close();
    await worker?.stop();
    await harness?.close();
  });

  /** Opens the only workflow that the query finds, from the list. */
  async function openFound(query: string, picture?: string): Promise<void> {
    await until(async () => (await harness.temporal.client.workflow.count(query)).count === 1);
    const { namespace } = harness.config.temporal;
    const list = `${process.env['TEST_TEMPORAL_UI_URL']}/namespaces/${namespace}/workflows`;
    await page.goto(`${list}?query=${encodeURIComponent(query)}`);
    await page.addStyleTag({ content: PLAIN });
    const found = page.locator('a:has-text("top-up/tu_"):visible');
    await found.first().waitFor();
    await take(picture);
    await found.first().click();
    await page.locator('h1:has-text("top-up/tu_")').waitFor();
  }

  /** The workflow's own description, which the page shows in a frame. */
  async function readDetails(picture?: string): Promise<string> {
    await page.locator('a:has-text("User Metadata"):visible').click();
    const texts = async () => {
      const frames = page.frames().map((frame) => frame.locator('body').innerText());
      return (await Promise.all(frames)).join('\n');
    };
    const details = await until(
      async () => {
        const text = await texts().catch(() => '');
        return /retry|Ended/.test(text) && text;
      },
      { timeoutMs: PAGE_TIMEOUT_MS },
    );
    await take(picture);
    return details;
  }

  async function choose(action: string): Promise<void> {
    await page.locator('button:has-text("More Actions"):visible').click();
    await page.locator(`[role=menuitem]:has-text("${action}"):visible`).click();
  }

  /** `mend` runs right before the update is sent: a stuck workflow also retries by itself. */
  async function sendUpdate(
    name: string,
    { picture, mend }: { picture?: string; mend?: () => Promise<void> } = {},
  ): Promise<void> {
    await choose('Send an Update');
    const dialog = page.locator('dialog[open]');
    await dialog.locator('[data-testid=update-select-button]').click();
    const option = dialog.locator(`[role=option]:has(span:text-is("${name}"))`);
    await option.waitFor();
    await take(picture);
    await option.click();
    await mend?.();
    await dialog.locator('button:has-text("Submit")').click();
    await dialog.waitFor({ state: 'hidden' });
  }

  async function take(picture: string | undefined): Promise<void> {
    const folder = process.env['SCREENSHOTS'];
    if (folder === undefined || picture === undefined) return;
    await page.screenshot({ path: join(folder, `${picture}.png`), timeout: PAGE_TIMEOUT_MS });
  }

  async function seeEnded(picture?: string): Promise<void> {
    await page.locator('span:text-matches("^Completed$", "i"):visible').first().waitFor();
    await take(picture);
  }

  async function setAmount(topUp: TopUp, amountMicros: number): Promise<void> {
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set amount_micros = ${amountMicros} where id = ${topUp.id}
    `);
  }

  it('finds a stuck one by the query, says why, and ends it by `retry` once the cause is fixed', async () => {
    const topUp = await harness.checkout(consumer, 25);
    await setAmount(topUp, 26_000_000);
    await harness.pay(topUp.sessionUrl);
    await openFound(
      'WorkflowType = "topUp" and Stuck = true and ExecutionStatus = "Running"',
      'stuck-list',
    );
    const details = await readDetails('stuck-details');
    assert.match(details, /Stuck since .*: the step ask keeps failing/);
    assert.match(
      details,
      /a different payment than the one requested: .*\$26\.00 expected, \$25\.00 found/s,
    );

    await sendUpdate('retry', {
      picture: 'send-retry',
      mend: () => setAmount(topUp, 25_000_000),
    });
    await harness.statusBecomes(topUp, 'completed');
    await seeEnded('stuck-ended');
    assert.equal((await harness.books(consumer)).credited, 25_000_000);
  });

  it('closes an unpaid checkout by `cancel`', async () => {
    const topUp = await harness.checkout(consumer, 25);
    await openFound(
      'WorkflowType = "topUp" and WaitingFor = "payment" and ExecutionStatus = "Running"',
    );
    assert.match(await readDetails(), /Waiting for the payment/);
    await sendUpdate('cancel');
    await harness.statusBecomes(topUp, 'expired');
    await seeEnded();
    const session = await harness.stripe.checkout.sessions.retrieve(topUp.sessionId ?? '');
    assert.equal(session.status, 'expired');
  });

  it('starts a terminated one again, which is then credited', async () => {
    const topUp = await harness.checkout(consumer, 25);
    await harness.control('webhooks', { mode: 'drop' });
    await harness.pay(topUp.sessionUrl);
    await harness.workflow(topUp.id).terminate('by mistake');
    await openFound('WorkflowType = "topUp" and ExecutionStatus = "Terminated"');
    await choose('Start Workflow Like This One');
    await page.waitForURL(/start-workflow/);
    const { workflowId } = harness.workflow(topUp.id);
    await until(async () => (await page.locator('#workflowId').inputValue()) === workflowId);
    await page.locator('[role=textbox]:has-text("tu_")').first().waitFor();
    await take('start-again');
    await page.locator('button:has-text("Start Workflow"):visible').last().click();
    await harness.statusBecomes(topUp, 'completed');
    assert.equal((await harness.books(consumer)).credited, 25_000_000);
    await harness.control('webhooks', { mode: 'deliver' });
  });
});
