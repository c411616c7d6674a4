/** Commands whose output nobody reads, or not yet: the keys of no account are lost without a word. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Client } from 'pg';
import { wireId } from '../../src/domain/ids.ts';
import { countWaiting } from '../support/row-locks.ts';
import { createTestDatabase, ourProgram, until, type TestDatabase } from '../support/stack.ts';

type Run = ChildProcessByStdio<null, Readable, Readable>;

describe('a command whose output is not read', () => {
  let database: TestDatabase;
  let client: Client;
  const runs: Run[] = [];

  before(async () => {
    database = await createTestDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
  });
  after(async () => {
    for (const run of runs) run.kill('SIGKILL');
    await client?.end();
    await database?.drop();
  });

  function start(...args: readonly string[]): Run {
    const run = spawn(process.execPath, [ourProgram(), ...args], {
      env: { PATH: process.env['PATH'], DATABASE_URL: database.url },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    runs.push(run);
    return run;
  }

  const createMany = (name: string) =>
    start('account', 'create', '--email', `${name}@example.com`, '--count', '5000', '--json');

  async function countOf(name: string): Promise<number | null> {
    const { rowCount } = await client.query('select from farebox.accounts where email like $1', [
      `${name}+%`,
    ]);
    return rowCount;
  }

  /** Until the command has created accounts, and has asked PostgreSQL for nothing since a second. */
  async function untilItWaits(name: string): Promise<void> {
    await until(async () => {
      const { rowCount } = await client.query(`
        select from pg_stat_activity
        where datname = current_database() and application_name = 'farebox account create'
          and (state <> 'idle' or state_change > now() - interval '1 second')
      `);
      return rowCount === 0 && (await countOf(name)) !== 0;
    });
  }

  it('creates the next accounts when the keys of the last ones are read, and stops on a signal', async () => {
    const run = createMany('slow');
    const ended = once(run, 'close');
    await untilItWaits('slow');
    assert.equal(await countOf('slow'), 1_000, 'a pipe has no room for the first thousand');
    run.kill('SIGINT');
    const [stopping] = (await once(run.stderr.setEncoding('utf8'), 'data')) as [string];
    assert.match(stopping, /^farebox: stopping when /);
    const [stdout, stderr] = await Promise.all([text(run.stdout), text(run.stderr)]);
    const lines = stdout.trim().split('\n');
    assert.equal(lines.length, 1_000);
    assert.match(lines.at(-1) ?? '', /"slow\+1000@.*"legacyKey":"[^"]+"\}$/);
    assert.equal(await countOf('slow'), 1_000);
    assert.match(
      stderr,
      /^farebox: Created and printed 1000 of 5000 accounts, then stopped: it was interrupted\. Repeat the command with --from 1001 --count 4000 /,
    );
    assert.deepEqual(await ended, [1, null]);
  });

  it('creates no more accounts when its reader has gone, and says which keys may be lost', async () => {
    const run = createMany('gone');
    const ended = once(run, 'close');
    await untilItWaits('gone');
    run.stdout.destroy();
    assert.match(
      await text(run.stderr),
      /^farebox: Nobody reads the output\. The accounts up to gone\+1000@example\.com exist, .* --from 1001 --count 4000 to create the rest\.\n$/,
    );
    assert.equal(await countOf('gone'), 1_000);
    assert.deepEqual(await ended, [3, null]);
  });

  /** Nobody reads what it prints. */
  async function unread(...args: readonly string[]): Promise<{ code: unknown; stderr: string }> {
    const run = start(...args);
    const ended = once(run, 'close');
    run.stdout.destroy();
    const stderr = await text(run.stderr);
    return { code: (await ended)[0], stderr };
  }

  it('says so of a change, whose new key nobody has seen, but not of a list', async () => {
    const said =
      /^farebox: the command is done, but nobody read its output: look for what it did, .*\n$/;
    const created = await unread('account', 'create', '--email', 'one@example.com');
    assert.equal(created.code, 3);
    assert.match(
      created.stderr,
      /^farebox: Nobody reads the output\. The account one@example\.com exists, .* key create`\.\n$/,
    );
    const changes = [
      ['key', 'create', 'one@example.com', '--kind', 'consumer'],
      ['budget', 'create', 'one@example.com', '--name', 'a budget'],
    ];
    for (const args of changes) {
      const { code, stderr } = await unread(...args);
      assert.equal(code, 3, args.join(' '));
      assert.match(stderr, said);
    }
    const { rows } = await client.query<{ id: string }>(
      `select id from farebox.api_keys where kind = 'consumer' and name is null order by id limit 1`,
    );
    const rolled = await unread('key', 'roll', wireId('key', rows[0]?.id ?? ''));
    assert.equal(rolled.code, 3);
    assert.match(rolled.stderr, said);
    const shows = [
      ['key', 'list', 'one@example.com'],
      ['account', 'list'],
      ['account', 'low-balance', 'one@example.com'],
      ['--help'],
    ];
    for (const args of shows) {
      assert.deepEqual(await unread(...args), { code: 0, stderr: '' }, args.join(' '));
    }
    const failing = ['key', 'create', 'nobody@example.com', '--kind', 'consumer'];
    const failed = await unread(...failing);
    assert.deepEqual([failed.code, failed.stderr.slice(0, 17)], [1, 'farebox: Account ']);
  });

  it('creates no account that it is told to stop before', async () => {
    await client.query('begin');
    await client.query('lock table farebox.accounts in access exclusive mode');
    const run = createMany('early');
    const ended = once(run, 'close');
    await until(async () => (await countWaiting(client, 'farebox account create')) > 0);
    run.kill('SIGINT');
    const [stopping] = (await once(run.stderr.setEncoding('utf8'), 'data')) as [string];
    assert.match(stopping, /^farebox: stopping when /);
    await client.query('commit');
    assert.match(await text(run.stderr), /^farebox: Interrupted before it created an account\.\n$/);
    assert.deepEqual(await ended, [1, null]);
    assert.equal(await countOf('early'), 0);
  });

  it('says so if the disk is full, and which keys may be lost', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'farebox-test-'));
    const args = ['account', 'create', '--email', 'full@example.com', '--count', '1000', '--json'];
    // A file may have 100 blocks of 1,024 bytes.
    const limited = spawn(
      'bash',
      ['-c', 'ulimit -f 100; exec "$@" >"$0"', join(folder, 'keys'), process.execPath].concat(
        ourProgram(),
        args,
      ),
      {
        env: { PATH: process.env['PATH'], DATABASE_URL: database.url },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    const ended = once(limited, 'close');
    assert.match(
      await text(limited.stderr),
      /^farebox: The output could not be written \(EFBIG: .*\)\. The accounts up to full\+1000@example\.com exist, /,
    );
    assert.deepEqual(await ended, [3, null]);
    assert.equal(await countOf('full'), 1_000);
    await rm(folder, { recursive: true });
  });
});
