/**
 * Long commands that somebody stops: nothing of them is left in PostgreSQL, and another run finishes the work. And
 * those that PostgreSQL's machine leaves waiting.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Client } from 'pg';
import { countWaiting } from '../support/row-locks.ts';
import {
  createTestDatabase,
  farebox,
  ourProgram,
  until,
  type TestDatabase,
} from '../support/stack.ts';

/** For each command, a statement that takes as long as a test wants: it waits here, as it would read many charges. */
const COMMANDS = [
  { args: ['doctor', '--only', 'charges'], slow: 'farebox.charges' },
  { args: ['rollup', 'rebuild'], slow: 'farebox.earnings_tail' },
] as const;

describe('a long command', () => {
  let database: TestDatabase;
  let env: Readonly<Record<string, string>>;
  let client: Client;

  before(async () => {
    database = await createTestDatabase();
    env = { DATABASE_URL: database.url };
    client = new Client({ connectionString: database.url });
    await client.connect();
  });
  after(async () => {
    await client?.end();
    await database?.drop();
  });

  for (const { args, slow } of COMMANDS) {
    const name = args.join(' ');
    it(`of farebox ${name} leaves no statement behind when it is stopped, and can run again`, async () => {
      await client.query(`alter table ${slow} rename to slow`);
      await client.query(`
        create view ${slow} as select * from farebox.slow where (select true from pg_sleep(600))
      `);
      const running = async () => {
        const { rowCount } = await client.query(
          `select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
        );
        return rowCount;
      };
      try {
        const run = spawn(process.execPath, [ourProgram(), ...args], {
          env: { PATH: process.env['PATH'], ...env },
          stdio: 'ignore',
        });
        const ended = once(run, 'exit');
        await until(running);
        run.kill('SIGINT');
        assert.deepEqual(await ended, [null, 'SIGINT']);
        await until(async () => (await running()) === 0);
      } finally {
        await client.query(`drop view ${slow}`);
        await client.query(`alter table farebox.slow rename to ${slow.split('.')[1]}`);
      }
      await farebox([...args], { env });
    });
  }

  it('asks the machine of a silent PostgreSQL whether it is still there', async function () {
    if (process.platform !== 'linux') return this.skip();
    for (const [name, arrange, restore] of [
      [
        'doctor',
        `alter table farebox.charges rename to slow;
        create view farebox.charges as select * from farebox.slow where (select true from pg_sleep(600))`,
        'drop view farebox.charges; alter table farebox.slow rename to charges',
      ],
      [
        'migrate',
        `select pg_advisory_lock(hashtext('farebox.migrate'))`,
        'select pg_advisory_unlock_all()',
      ],
    ] as const) {
      await client.query(arrange);
      const args = name === 'doctor' ? [name, '--only', 'charges'] : [name];
      const run = spawn(process.execPath, [ourProgram(), ...args], {
        env: { PATH: process.env['PATH'], ...env },
        stdio: 'ignore',
      });
      try {
        await until(async () => {
          const { rows } = await client.query<{ port: number }>(
            `select client_port as port from pg_stat_activity where datname = current_database()
              and application_name = 'farebox ${name}' and wait_event in ('PgSleep', 'advisory')`,
          );
          return rows.length === 1 && isProbed(rows[0]?.port ?? 0);
        });
      } finally {
        const ended = once(run, 'exit');
        run.kill('SIGKILL');
        await ended;
        await client.query(restore);
      }
    }
  });

  it('that is process 1 of a container without an init ends on a signal', async function () {
    const contained = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child'];
    if (spawnSync('unshare', [...contained, 'true']).status !== 0) this.skip();
    await client.query('begin');
    await client.query('lock table farebox.accounts');
    const [program, ...args] = [process.execPath, ourProgram(), 'account', 'list'];
    const run = spawn('unshare', [...contained, program, ...args], {
      env: { PATH: process.env['PATH'], ...env },
      stdio: 'ignore',
    });
    const ended = once(run, 'exit');
    try {
      await until(async () => (await countWaiting(client, 'farebox account list')) > 0);
      const children = readFileSync(`/proc/${run.pid}/task/${run.pid}/children`, 'utf8');
      process.kill(Number(children), 'SIGTERM');
      assert.deepEqual(await ended, [143, null]);
    } finally {
      run.kill('SIGKILL');
      await client.query('rollback');
    }
  });
});

/** Whether Linux has a timer for the next probe of the connection from this port: `tr` is 02. */
function isProbed(port: number): boolean {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const connections = ['tcp', 'tcp6'].flatMap((each) =>
    readFileSync(`/proc/net/${each}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/ +/)),
  );
  const [, , , , , timer = ''] = connections.find(([, address]) => address?.endsWith(local)) ?? [];
  return timer.startsWith('02:');
}
