/** A command that a start runs: what it says while it waits is shown, and what it fails with is the error. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { Client } from 'pg';
import { farebox } from '../../src/embedded/run-command.ts';
import { countWaiting } from '../support/row-locks.ts';
import { asSuperuser, createTestDatabase, until, type TestDatabase } from '../support/stack.ts';

const RUN_COMMAND = join(import.meta.dirname, '../../src/embedded/run-command.ts');

describe('a command of a start', () => {
  let database: TestDatabase;
  let shown: string[];

  before(async () => {
    database = await createTestDatabase();
  });
  beforeEach(() => {
    shown = [];
  });
  after(() => database?.drop());

  const waits = () =>
    shown.filter((line) => /^waiting for another migration \(process \d+/.test(line));
  const run = (settings: Readonly<Record<string, string>>) => {
    const progress = { say() {}, line: (text: string) => void shown.push(text), end() {} };
    const env = { PATH: process.env['PATH'] };
    return farebox({ env, progress }, settings, 'migrate');
  };

  it('says what it is waiting for while it waits', async () => {
    const other = new Client({ connectionString: asSuperuser(database.url) });
    await other.connect();
    let running: Promise<string>;
    try {
      await other.query('begin');
      await other.query(`select pg_advisory_xact_lock(hashtext('farebox.migrate'))`);
      running = run({ DATABASE_URL: database.url });
      await until(() => waits().length > 0);
    } finally {
      await other.end();
    }
    assert.match(await running, /up to date/);
    assert.equal(waits().length, 1);
    // The tests' server may lose data, which is said too.
    assert.match(shown.join('\n'), /fsync is off/);
  });

  it('ends with a start that is killed', async () => {
    const other = new Client({ connectionString: asSuperuser(database.url) });
    await other.connect();
    const waiting = () => countWaiting(other, 'farebox migrate');
    try {
      await other.query('begin');
      await other.query(`select pg_advisory_xact_lock(hashtext('farebox.migrate'))`);
      const progress = `{ say() {}, line() {}, end() {} }`;
      const code = `
        const { farebox } = await import(${JSON.stringify(RUN_COMMAND)});
        await farebox({ env: {}, progress: ${progress} }, process.env, 'migrate');`;
      const start = spawn(process.execPath, ['--input-type=module', '--eval', code], {
        env: { PATH: process.env['PATH'], DATABASE_URL: database.url },
      });
      await until(waiting);
      start.kill('SIGKILL');
      await until(async () => (await waiting()) === 0);
    } finally {
      await other.end();
    }
  });

  it('fails with what it said, which is shown once', async () => {
    await assert.rejects(run({ DATABASE_URL: 'x' }), /^Error: DATABASE_URL must be a URL such as/);
    assert.deepEqual(shown, []);
  });
});
