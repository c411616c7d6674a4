/** The page behind the link in the mail about an approval, when the database fails. */
import assert from 'node:assert/strict';
import { ApprovalLinks } from '../../../src/signing/approval-links.ts';
import { readConfig } from '../../../src/config.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { ask } from '../../support/approval-requests.ts';
import { makeBudget, makeKey, showBudget } from '../../support/budget-requests.ts';
import { startFaultyLine, type FaultyLine } from '../../support/faulty-line.ts';
import { holdCommits } from '../../support/held-commits.ts';
import { startApi, until, type Server } from '../../support/stack.ts';

describe('the page of an approval', () => {
  let api: TestApi;
  let line: FaultyLine;
  let lined: Server;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    const url = new URL(api.databaseUrl);
    line = await startFaultyLine({ host: url.hostname, port: Number(url.port) });
    url.port = String(line.port);
    lined = await startApi({ env: { ...api.env, DATABASE_URL: url.href } });
    account = await api.createAccount(10);
  });
  after(async () => {
    await lined?.stop();
    await line?.stop();
    await api?.stop();
  });

  /** A question about a limit of $1.00, and the form that answers it. */
  async function asked(limited: Parameters<typeof makeBudget>[2] = { limit: 1 }) {
    const { consumerKey: key } = account;
    const budget = await makeBudget(api, key, limited);
    const { id, expiresAt } = await ask(
      api,
      account,
      (await makeKey(api, key, budget.id, { name: 'agent 7' })).key,
      2,
    );
    const { masterSecrets } = readConfig(api.env);
    const links = new ApprovalLinks(masterSecrets, lined.url);
    const link = links.urlFor({ id: uuidOf('approval', id) ?? '', expiresAt });
    const token = new URL(link).searchParams.get('link') ?? '';
    const decide = async (decision: string, typed = {}) => {
      const body = new URLSearchParams({ link: token, decision, ...typed });
      const answer = await fetch(`${lined.url}/approval`, { method: 'POST', body });
      return { status: answer.status, html: await answer.text() };
    };
    const show = async () => (await fetch(link)).text();
    return { show, decide, limit: async () => (await showBudget(api, key, budget.id)).limit };
  }

  /** Resolves when a session waits for a lock. */
  const waiting = () => until(async () => (await api.waitingBackend()) !== undefined);

  it('names the key that asks', async () => {
    const { show } = await asked();
    assert.ok((await show()).includes('<dt>Key</dt><dd><bdi>agent 7</bdi></dd>'));
  });

  it('names the limit that an answer raises', async () => {
    const limits = [
      [{ limit: 1 }, 'New total limit, in dollars'],
      [{ window: { per: 'day', limit: 1 } }, 'New limit for each window, in dollars'],
      [{ maxPerCall: 1 }, 'New limit for one call, in dollars'],
    ] as const;
    for (const [limited, label] of limits) {
      const { show } = await asked(limited);
      assert.ok((await show()).includes(`<label for="limit">${label}</label>`), label);
    }
  });

  it('says what to type as a limit, and not how programs name the field', async () => {
    const { decide, limit } = await asked();
    for (const [typed, said] of [
      ['1,50', '>Enter the limit in dollars, such as 2.50.<'],
      ['0.5', '>The limit must be more than $1.00, the current limit.<'],
    ] as const) {
      const { status, html } = await decide('raise', { limit: typed });
      assert.equal(status, 400);
      assert.ok(html.includes(said), html);
    }
    assert.equal(await limit(), 1);
  });

  it('does not say that nothing was changed when the commit may have succeeded', async () => {
    const { decide, limit } = await asked();
    const held = await holdCommits(api.sql, 'update', 'farebox.approvals');
    const deciding = decide('always');
    await waiting();
    line.damage({ kind: 'cut' });
    await held.release();
    const { status, html } = await deciding;
    line.mend();
    await until(async () => (await limit()) === 2);
    await held.end();
    assert.equal(status, 500);
    assert.match(html, /<h1>Not known yet<\/h1>.*may or may not have worked/);
    assert.match((await decide('always')).html, /The limit is now \$2\.00/);
  });

  it('says that nothing was changed when that is so', async () => {
    const { decide, limit } = await asked();
    await api.sql.query('begin');
    await api.sql.query('lock table farebox.budget_details in access exclusive mode');
    const { status, html } = await decide('always');
    await api.sql.query('rollback');
    assert.equal(status, 503);
    assert.match(html, /<h1>Unavailable<\/h1>.*Nothing was changed/);
    assert.equal(await limit(), 1);
  });
});
