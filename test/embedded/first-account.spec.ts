/** The first account of a data directory, which keeps its keys. start.slow.spec.ts has the starts themselves. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFirstAccount } from '../../src/embedded/first-account.ts';
import { createTestDatabase, farebox, type TestDatabase } from '../support/stack.ts';

describe('the first account of a data directory', () => {
  let database: TestDatabase;
  let dataDir: string;

  before(async () => {
    database = await createTestDatabase();
    dataDir = await mkdtemp(join(tmpdir(), 'farebox-first-account-'));
  });
  after(async () => {
    await database?.drop();
    if (dataDir) await rm(dataDir, { recursive: true, force: true });
  });

  const run = (...args: readonly string[]) =>
    farebox(args, { env: { DATABASE_URL: database.url } });
  const open = () => openFirstAccount(dataDir, run, (line) => assert.fail(line));

  it('is the same at the next start, with another link to sign in', async () => {
    const first = await open();
    assert.equal(first.account.email, 'you@example.com');
    const next = await open();
    assert.deepEqual(next.account, first.account);
    assert.notEqual(next.signInUrl, first.signInUrl);
  });

  it('is another one if an earlier start was killed before it stored the keys of the first', async () => {
    await rm(join(dataDir, 'first-account.json'));
    const { account } = await open();
    assert.match(account.email, /^you\+\d+@example\.com$/);
    const kept = await readFile(join(dataDir, 'first-account.json'), 'utf8');
    assert.deepEqual(JSON.parse(kept), account);
    const shown = await run('account', 'show', account.consumerId, '--json');
    assert.partialDeepStrictEqual(JSON.parse(shown), { email: account.email, balance: 10 });
    assert.deepEqual((await open()).account, account);
  });
});
