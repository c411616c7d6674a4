/** Changes of keys: a revoked one stops everywhere within a second, a rolled one overlaps. */
import assert from 'node:assert/strict';
import { wireId } from '../../../src/domain/ids.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../../support/http.ts';
import { farebox, until } from '../../support/stack.ts';

interface Key {
  readonly id: string;
  readonly kind: string;
  readonly key: string;
}

/** The promise is one second; after it, no answer may come from an old cache. */
async function aSecond(): Promise<void> {
  const end = performance.now() + 1_000;
  await until(() => performance.now() >= end);
}

describe('keys', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi({ servers: 2 });
  });
  beforeEach(async () => {
    account = await api.createAccount(10);
    // Every server has both keys in memory.
    for (const answer of await chargeEverywhere()) bodyOf(answer, 201, ChargeReply);
  });
  after(() => api.stop());

  it('stop working on every server within a second of being revoked', async () => {
    const [payer, other] = [account, await api.createAccount(10)];
    const charged = { ...payer, developerKey: other.developerKey };
    for (const answer of await chargeEverywhere(charged)) bodyOf(answer, 201, ChargeReply);
    await Promise.all(
      ['developer', 'consumer'].map(async (kind) => command('revoke', await idOf(kind))),
    );
    await aSecond();
    for (const answer of await chargeEverywhere()) assertError(answer, 401, 'invalid_secret_key');
    for (const answer of await chargeEverywhere(charged)) {
      assertError(answer, 401, 'invalid_api_key', 'apiKey');
    }
    const answer = await call(api, 'GET', '/v1/balance', { key: payer.consumerKey });
    assertError(answer, 401, 'invalid_api_key');
  });

  it('work beside the new one during the overlap of a roll, and no longer', async () => {
    const { rolled, old, expiresAt } = await rollInTime();
    await until(() => Date.now() > expiresAt);
    for (const answer of await chargeEverywhere({ ...account, developerKey: old })) {
      assertError(answer, 401, 'invalid_secret_key');
    }
    const renewed = { ...account, developerKey: rolled.key };
    for (const answer of await chargeEverywhere(renewed)) bodyOf(answer, 201, ChargeReply);
  });

  /**
   * Charges are made with both keys during the overlap, which begins in the process of the command. If it is over
   * before they are made, another key is rolled, with a longer one.
   */
  async function rollInTime(overlapSeconds = 3) {
    const { id, key: old } = await command('create', account.email, '--kind', 'developer');
    for (const answer of await chargeEverywhere({ ...account, developerKey: old })) {
      bodyOf(answer, 201, ChargeReply);
    }
    const rolled = await command('roll', id, '--overlap', `${overlapSeconds}s`);
    assert.equal(rolled.kind, 'developer');
    const answers = [];
    for (const developerKey of [rolled.key, old]) {
      answers.push(...(await chargeEverywhere({ ...account, developerKey })));
    }
    const { rows } = await api.sql.query<{ expires: Date }>(
      'select expires_at as expires from farebox.api_keys where id = $1',
      [id.slice('key_'.length)],
    );
    const expiresAt = Number(rows[0]?.expires);
    if (Date.now() >= expiresAt && overlapSeconds < 150) return rollInTime(2 * overlapSeconds);
    for (const answer of answers) bodyOf(answer, 201, ChargeReply);
    return { rolled, old, expiresAt };
  }

  it('are replaced at once by a roll without an overlap', async () => {
    const rolled = await command('roll', await idOf('consumer'));
    await aSecond();
    for (const answer of await chargeEverywhere()) assert.equal(answer.status, 401);
    const renewed = { ...account, consumerKey: rolled.key };
    for (const answer of await chargeEverywhere(renewed)) bodyOf(answer, 201, ChargeReply);
  });

  it('work as soon as they are created, beside the existing ones', async () => {
    const { key } = await command('create', account.email, '--kind', 'developer');
    for (const developerKey of [key, account.developerKey]) {
      for (const answer of await chargeEverywhere({ ...account, developerKey })) {
        bodyOf(answer, 201, ChargeReply);
      }
    }
  });

  function chargeEverywhere(who = account): Promise<Answer[]> {
    return Promise.all(api.servers.map((server) => charge(server, who)));
  }

  async function command(...args: readonly string[]): Promise<Key> {
    return JSON.parse(await farebox(['key', ...args, '--json'], { env: api.env })) as Key;
  }

  async function idOf(kind: string): Promise<string> {
    const { rows } = await api.sql.query<{ id: string }>(
      `select k.id from farebox.api_keys k join farebox.accounts a on a.id = k.account_id
       where a.email = $1 and k.kind = $2`,
      [account.email, kind],
    );
    return wireId('key', rows[0]?.id ?? '');
  }
});
