/** `farebox account` and `farebox key`, as users type them. */
import assert from 'node:assert/strict';
import { kindOfKey } from '../../src/domain/api-keys.ts';
import { createTestDatabase, farebox, type TestDatabase } from '../support/stack.ts';

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
      'consumerId',
      'consumerKey',
      'developerId',
      'developerKey',
      'legacyKey',
    ]);
    assert.equal(kindOfKey('fare', made?.['consumerKey'] ?? ''), 'consumer');
    assert.equal(kindOfKey('fare', made?.['developerKey'] ?? ''), 'developer');
    assert.equal(kindOfKey('fare', made?.['legacyKey'] ?? ''), 'legacy');
  });

  it('creates many, one line each, and none when an address is taken', async () => {
    assert.equal(
      (await json('account', 'create', '--email', 'n@example.com', '--count', '25')).length,
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

  it('lists, creates, rolls and revokes keys, and shows a key only once', async () => {
    const [made] = await json('account', 'create', '--email', 'keys@example.com');
    const [extra] = await json('key', 'create', made?.['consumerId'] ?? '', '--kind', 'consumer');
    const [rolled] = await json('key', 'roll', extra?.['id'] ?? '', '--overlap', '24h');
    await json('key', 'revoke', rolled?.['id'] ?? '');
    const keys = await json('key', 'list', 'keys@example.com');
    assert.equal(keys.length, 5);
    const byId = new Map(keys.map((key) => [key['id'], key]));
    assert.notEqual(byId.get(extra?.['id'] ?? '')?.['expiresAt'], null);
    assert.notEqual(byId.get(rolled?.['id'] ?? '')?.['revokedAt'], null);
    assert.ok(!JSON.stringify(keys).includes(extra?.['key'] ?? ''));
    assert.equal(byId.get(extra?.['id'] ?? '')?.['lastFour'], extra?.['key']?.slice(-4));
  });

  it('refuses invalid input with one sentence', async () => {
    await assertRefused(/Account nobody@.* not found/, 'key', 'list', 'nobody@example.com');
    await assertRefused(/No active key key_0/, 'key', 'revoke', 'key_0');
    await assertRefused(/email address/, 'account', 'create', '--email', 'nothing');
    await assertRefused(
      /up to six decimals/,
      'account',
      'create',
      '--email',
      'a@b.c',
      '--balance',
      '0.0000001',
    );
  });
});
