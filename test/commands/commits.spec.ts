/** What commands print when a COMMIT fails: everything that was committed before, and nothing that was rolled back. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { createTestDatabase, farebox, type TestDatabase } from '../support/stack.ts';

interface Failed {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

describe('a command whose COMMIT fails', () => {
  let database: TestDatabase;
  let sql: Client;
  let env: Readonly<Record<string, string>>;

  before(async () => {
    database = await createTestDatabase();
    env = { DATABASE_URL: database.url };
    sql = new Client({ connectionString: database.url });
    await sql.connect();
    await sql.query(`
      create function public.refuse() returns trigger language plpgsql as $$
      begin
        raise exception 'refused at the commit';
      end $$
    `);
  });
  after(async () => {
    await sql?.end();
    await database?.drop();
  });

  const json = async (...args: readonly string[]) =>
    (await farebox([...args, '--json'], { env }))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Readonly<Record<string, string>>);

  async function failed(...args: readonly string[]): Promise<Failed> {
    try {
      assert.fail(`succeeded: ${await farebox(args, { env })}`);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      return error as Failed;
    }
  }

  /** While inserts into the table are refused, at the end of their transaction. */
  async function whileRefused<T>(table: string, work: () => Promise<T>): Promise<T> {
    await sql.query(`
      create constraint trigger zz_refuse after insert on ${table}
      deferrable initially deferred for each row execute function public.refuse()
    `);
    try {
      return await work();
    } finally {
      await sql.query(`drop trigger zz_refuse on ${table}`);
    }
  }

  it('prints the accounts that exist, and where to continue', async () => {
    await sql.query(`
      create trigger zz_refuse before insert on farebox.accounts for each row
      when (new.email = 'many+1505@example.com') execute function public.refuse()
    `);
    const create = ['account', 'create', '--email', 'many@example.com', '--balance', '2'];
    const ended = await failed(...create, '--from', '6', '--count', '1600', '--json');
    const lines = ended.stdout.trim().split('\n');
    const emails = lines.map((line) => (JSON.parse(line) as { email: string }).email);
    assert.equal(emails.length, 1_000);
    assert.deepEqual(
      [emails[0], emails.at(-1)],
      ['many+6@example.com', 'many+1005@example.com'],
      'each line has the email of its account',
    );
    assert.equal(ended.code, 1);
    assert.match(
      ended.stderr,
      /^farebox: Created and printed 1000 of 1600 accounts, then stopped: /,
    );
    assert.match(ended.stderr, /refused at the commit\. Repeat the command with .*\n$/);
    const count = () =>
      sql
        .query(`select from farebox.accounts where email like 'many+%'`)
        .then(({ rowCount }) => rowCount);
    assert.equal(await count(), 1_000);

    await sql.query('drop trigger zz_refuse on farebox.accounts');
    const [, rest = ''] = /with (--from \d+ --count \d+) to/.exec(ended.stderr) ?? [];
    const more = await json(...create, ...rest.split(' '));
    assert.deepEqual([more.length, more.at(-1)?.['email']], [600, 'many+1605@example.com']);
    assert.equal(await count(), 1_600);
  });

  it('prints no new key, and leaves the old one as it was', async () => {
    await json('account', 'create', '--email', 'roll@example.com');
    const [made] = await json('key', 'create', 'roll@example.com', '--kind', 'consumer');
    const before = await json('key', 'list', 'roll@example.com');
    const ended = await whileRefused('farebox.api_keys', () =>
      failed('key', 'roll', made?.['id'] ?? ''),
    );
    assert.deepEqual([ended.code, ended.stdout], [1, '']);
    assert.match(ended.stderr, /^farebox: .*refused at the commit/);
    assert.deepEqual(await json('key', 'list', 'roll@example.com'), before);
  });
});
