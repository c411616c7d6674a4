/** `farebox account` and `farebox key`, as users type them. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { kindOfKey } from '../../src/domain/api-keys.ts';
import { uuidOf } from '../../src/domain/ids.ts';
import { createTestAccount } from '../support/accounts.ts';
import { createTestDatabase, farebox, ourProgram, type TestDatabase } from '../support/stack.ts';

const run = promisify(execFile);

type Printed = Readonly<Record<string, string | null>>;

describe('farebox account and key', () => {
  let database: TestDatabase;
  let env: { readonly env: Readonly<Record<string, string>> };

  before(async () => {
    database = await createTestDatabase();
    env = { env: { DATABASE_URL: database.url } };
  });
  after(() => database.drop());

  async function json(...args: readonly string[]): Promise<Printed[]> {
    const printed = await farebox([...args, '--json'], env);
    return printed
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Printed);
  }

  async function assertRefused(said: RegExp, ...args: readonly string[]): Promise<void> {
    await assert.rejects(farebox(args, env), (error: Error & { stderr?: string }) => {
      assert.match(error.stderr ?? '', said);
      return true;
    });
  }

  it('creates an account with a key of each kind, each in its own form', async () => {
    const [made] = await json(
      'account',
      'create',
      '--email',
      'One@Example.com',
      '--balance',
      '2.5',
    );
    assert.deepEqual(Object.keys(made ?? {}), [
      'accountId',
      'email',
      'consumerId',
      'consumerKey',
      'developerId',
      'developerKey',
      'legacyKey',
    ]);
    assert.equal(made?.['email'], 'one@example.com');
    assert.equal(kindOfKey('fare', made?.['consumerKey'] ?? ''), 'consumer');
    assert.equal(kindOfKey('fare', made?.['developerKey'] ?? ''), 'developer');
    assert.equal(kindOfKey('fare', made?.['legacyKey'] ?? ''), 'legacy');
  });

  it('creates many, one line each, and none when an address is taken', async () => {
    assert.equal(
      new Set(
        (await json('account', 'create', '--email', 'n@example.com', '--count', '25')).map(
          ({ email }) => email,
        ),
      ).size,
      25,
    );
    await assertRefused(
      /n\+1@example\.com already/,
      'account',
      'create',
      '--email',
      'n@example.com',
      '--count',
      '26',
    );
    await assertRefused(/Account n\+26@.* not found/, 'key', 'list', 'n+26@example.com');
  });

  it('refuses an address with which nobody could sign in', async () => {
    const long = `${'a'.repeat(254 - '@example.com'.length)}@example.com`;
    for (const [email, ...more] of [
      ['you@localhost'],
      ['you@münchen.example.com'],
      [long, '--count', '1'],
    ] as const) {
      await assertRefused(/email address/, 'account', 'create', '--email', email, ...more);
    }
  });

  it('lists, creates, rolls and revokes keys, and shows a key only once', async () => {
    const { email, consumerId } = await createTestAccount(database.url, 0);
    const [extra] = await json('key', 'create', consumerId, '--kind', 'consumer');
    // Keys that their owners create in the console have names.
    const sql = new Client({ connectionString: database.url });
    await sql.connect();
    await sql.query(`update farebox.api_keys set name = 'laptop' where id = $1`, [
      uuidOf('key', extra?.['id'] ?? ''),
    ]);
    await sql.end();
    const [rolled] = await json('key', 'roll', extra?.['id'] ?? '', '--overlap', '24h');
    await json('key', 'revoke', rolled?.['id'] ?? '');
    const keys = await json('key', 'list', email);
    assert.equal(keys.length, 5);
    const byId = new Map(keys.map((key) => [key['id'], key]));
    assert.notEqual(byId.get(extra?.['id'] ?? '')?.['expiresAt'], null);
    assert.notEqual(byId.get(rolled?.['id'] ?? '')?.['revokedAt'], null);
    assert.equal(byId.get(rolled?.['id'] ?? '')?.['name'], 'laptop');
    assert.ok(!JSON.stringify(keys).includes(extra?.['key'] ?? ''));
    assert.equal(byId.get(extra?.['id'] ?? '')?.['lastFour'], extra?.['key']?.slice(-4));
  });

  it('lists accounts in pages, newest first, and finds some by a part of their email', async () => {
    const made = [];
    for (const name of ['ann', 'bob', 'cat']) {
      made.push(
        ...(await json('account', 'create', '--email', `${name}@list.example`, '--balance', '1.5')),
      );
    }
    const [, bob, cat] = made;
    const newest = await json('account', 'list', '--limit', '2');
    assert.deepEqual(
      newest.map(({ email, balance }) => [email, balance]),
      [
        ['cat@list.example', 1.5],
        ['bob@list.example', 1.5],
      ],
    );
    assert.equal(newest[0]?.['accountId'], cat?.['accountId']);
    const [next] = await json(
      'account',
      'list',
      '--limit',
      '1',
      '--after',
      bob?.['accountId'] ?? '',
    );
    assert.equal(next?.['email'], 'ann@list.example');
    const found = await farebox(['account', 'list', '--search', 'LIST.example'], env);
    assert.deepEqual(
      found.split('\n').map((line) => line.split(/\s+/)[1]),
      ['email', 'cat@list.example', 'bob@list.example', 'ann@list.example', undefined],
    );
    await assertRefused(
      /--after must be the id of an account/,
      'account',
      'list',
      '--after',
      'bob',
    );
  });

  it('shows one account by any of its names, and the effect of a consent', async () => {
    const [made] = await json('account', 'create', '--email', 'show@example.com', '--balance', '3');
    const [consented] = await json('account', 'consent', 'show@example.com', '--ceiling', '20.5');
    assert.deepEqual(consented, { consumerId: made?.['consumerId'], consentCeiling: 20.5 });
    await json('key', 'revoke', (await json('key', 'list', 'show@example.com'))[0]?.['id'] ?? '');
    const wanted = {
      accountId: made?.['accountId'],
      email: 'show@example.com',
      consumerId: made?.['consumerId'],
      developerId: made?.['developerId'],
      balance: 3,
      heldByHolds: 0,
      heldByDisputes: 0,
      debt: 0,
      spent: 0,
      refunded: 0,
      consentCeiling: 20.5,
      autoTopUp: 'off',
      keys: 2,
    };
    for (const name of ['accountId', 'email', 'consumerId', 'developerId']) {
      assert.deepEqual(await json('account', 'show', made?.[name] ?? ''), [wanted]);
    }
    const [withdrawn] = await json('account', 'consent', 'show@example.com', '--ceiling', '0');
    assert.equal(withdrawn?.['consentCeiling'], null);
  });

  it('sets, shows and removes the threshold of a low balance', async () => {
    const { consumerId } = await createTestAccount(database.url, 3);
    const low = async (...args: string[]) => json('account', 'low-balance', consumerId, ...args);
    await assert.rejects(low('--threshold', '0'), /more than \$0/);
    assert.deepEqual(await low('--threshold', '2.5'), [{ threshold: 2.5 }]);
    assert.deepEqual(await low(), [{ threshold: 2.5 }]);
    assert.deepEqual(await low('--threshold', 'none'), [{ threshold: null }]);
  });

  it('refuses automatic top-ups without a consent, as the console does', async () => {
    const { email } = await createTestAccount(database.url, 0);
    const limits = ['--threshold', '2', '--amount', '10', '--ceiling', '15'];
    await assert.rejects(
      json('account', 'auto-top-up', email, ...limits),
      /The owner has not allowed payments from the saved card/,
    );
    assert.deepEqual(await json('account', 'auto-top-up', email), [
      { status: 'off', reason: null },
    ]);
    assert.deepEqual(await json('account', 'auto-top-up', email, '--off'), [
      { status: 'off', reason: null },
    ]);
  });

  it('says that a sign-in link opens on this machine only, if it was not told the address', async () => {
    const { consumerId } = await createTestAccount(database.url, 0);
    const printed = async (settings: Readonly<Record<string, string>>) =>
      run(process.execPath, [ourProgram(), 'account', 'sign-in-link', consumerId], {
        env: { ...process.env, ...env.env, ...settings },
      });
    const local = await printed({});
    assert.match(
      local.stdout,
      /^http:\/\/127\.0\.0\.1:8080\/console\/auth\/sign-in-link\?token=\S+\n$/,
    );
    assert.match(
      local.stderr,
      /^farebox: neither BASE_URL nor CONSOLE_URL is set, so this link works only on this machine/,
    );
    for (const name of ['BASE_URL', 'CONSOLE_URL']) {
      const { stdout, stderr } = await printed({ [name]: 'https://pay.example' });
      assert.match(stdout, /^https:\/\/pay\.example\/console\/auth\/sign-in-link\?token=/);
      assert.equal(stderr, '');
    }
  });

  it('writes every change to the audit log, with the command that made it', async () => {
    const email = 'audited@example.com';
    const [made] = await json('account', 'create', '--email', email, '--balance', '3');
    const [extra] = await json('key', 'create', email, '--kind', 'consumer');
    await json('key', 'roll', extra?.['id'] ?? '');
    await json('account', 'consent', email, '--ceiling', '20');
    const limits = ['--threshold', '2', '--amount', '10', '--ceiling', '15'];
    await json('account', 'auto-top-up', email, ...limits);
    await json('account', 'adjust', email, '-1.5', '--reason', 'a test');
    await farebox(['account', 'sign-in-link', email], env);
    const entries = await json('audit', '--account', made?.['accountId'] ?? '');
    assert.deepEqual(
      entries.map(({ action, program }) => [action, program]),
      [
        ['sign_in_link.created', 'farebox account sign-in-link'],
        ['balance.adjusted', 'farebox account adjust'],
        ['auto_top_up.set', 'farebox account auto-top-up'],
        ['consent.changed', 'farebox account consent'],
        ['key.created', 'farebox key roll'],
        ['key.revoked', 'farebox key roll'],
        ['key.created', 'farebox key create'],
        ['balance.opened', 'farebox account create'],
        ...Array.from({ length: 3 }, () => ['key.created', 'farebox account create']),
        ['account.created', 'farebox account create'],
      ],
    );
    const [, adjusted, , consented, , revoked] = entries;
    assert.deepEqual(adjusted?.['details'], { amount: -1.5, reason: 'a test' });
    assert.deepEqual(consented?.['details'], {
      consentCeiling: 20,
      before: { consentCeiling: null },
    });
    assert.equal(revoked?.['subjectId'], extra?.['id']);
    assert.equal(revoked?.['accountId'], made?.['accountId']);
    const [next] = await json('audit', '--limit', '1', '--after', String(entries[3]?.['number']));
    assert.deepEqual(next, entries[4]);
    assert.match(
      await farebox(['audit'], env),
      /^number +happenedAt +action +accountId .* program /,
    );
    assert.ok(!JSON.stringify(entries).includes(extra?.['key'] ?? ''));
    assert.ok(!JSON.stringify(entries).includes(email));
  });

  it('lists keys as a table with a line each', async () => {
    const { email } = await createTestAccount(database.url, 0);
    const lines = (await farebox(['key', 'list', email], env)).trim().split('\n');
    assert.match(lines[0] ?? '', /^id +kind +mode +name +lastFour +createdAt/);
    const kinds = new Set(lines.slice(1).map((line) => line.split(/\s+/)[1]));
    assert.deepEqual(kinds, new Set(['consumer', 'developer', 'legacy']));
    assert.equal(lines.length, 4);
  });

  it('refuses invalid input with one sentence', async () => {
    await assertRefused(/Account nobody@.* not found/, 'key', 'list', 'nobody@example.com');
    await assertRefused(/Account nobody@.* not found/, 'audit', '--account', 'nobody@example.com');
    await assertRefused(/number of an entry/, 'audit', '--after', 'yesterday');
    await assertRefused(/No active key key_0/, 'key', 'revoke', 'key_0');
    await assertRefused(/email address/, 'account', 'create', '--email', 'nothing');
    await assertRefused(
      /option '--balance <dollars>' .* at most six decimals/,
      'account',
      'create',
      '--email',
      'a@example.com',
      '--balance',
      '0.0000001',
    );
  });
});
