/**
 * What somebody may try with budgets: guess keys, charge while a branch is closed, refund at once, and see
 * how soon it ends.
 */
import assert from 'node:assert/strict';
import { composeKey } from '../../../src/domain/api-keys.ts';
import { uuidOf, wireId } from '../../../src/domain/ids.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { BudgetReply } from '../../../src/schemas/budgets.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import { KeyReply } from '../../../src/schemas/keys.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { makeBudget, makeKey, showBudget, spend } from '../../support/budget-requests.ts';
import { askHold } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { until } from '../../support/stack.ts';

/** The promise is a second; a busy machine gets far more. */
const ENDS_MS_MAX = 120_000;
/** The promise is 50 ms, for the request as well; a busy machine gets far more. */
const WORKS_MS_MAX = 60_000;

describe('an attack on budgets', () => {
  const api = openTestApi({ servers: 2 });
  let account: TestAccount;
  let key: string;

  beforeEach(async () => {
    account = await api.createAccount(100);
    key = account.consumerKey;
  });

  it('by keys that are guessed from a neighbor finds nothing', async () => {
    const { id } = await makeBudget(api, key);
    const made = await makeKey(api, key, id);
    const text = made.key.slice('fare_ck_live_'.length, -6);
    const guesses = [
      // One character further, with a checksum that fits and with the old one.
      composeKey('fare', 'consumer', bytesOf(next(text, 31)), 'live'),
      composeKey('fare', 'consumer', bytesOf(next(text, 0)), 'live'),
      `fare_ck_live_${next(text, 31)}${made.key.slice(-6)}`,
      made.key.slice(0, -1),
      made.key.toLowerCase(),
      `${made.key} `,
      made.id,
      made.id.replace('key_', 'fare_ck_live_'),
    ];
    for (const guess of guesses) {
      const answer = await spend(api, account, guess, 0.01);
      assertError(answer, 401, 'invalid_api_key', 'apiKey');
      assert.equal((await askHold(api, { ...account, consumerKey: guess })).status, 401);
    }
    // Ids follow each other in time; a neighbor's is no secret, and helps nobody.
    const stranger = (await api.createAccount(1)).consumerKey;
    for (const by of [stranger, key]) {
      const uuid = uuidOf('key', made.id) ?? '';
      const near =
        uuid.slice(0, -1) + ((Number.parseInt(uuid.slice(-1), 16) + 1) % 16).toString(16);
      const asked = by === key ? wireId('key', near) : made.id;
      for (const action of ['roll', 'revoke']) {
        const answer = await call(api, 'POST', `/v1/keys/${asked}/${action}`, {
          key: by,
          body: {},
        });
        assertError(answer, 404, 'not_found');
      }
    }
    assert.equal((await spend(api, account, made.key, 0.01)).status, 201);
  });

  it('by charges while the root is closed takes nothing after the answer, and leaves exact sums', async () => {
    const root = await makeBudget(api, key, { limit: 90 });
    const leaf = await makeBudget(api, key, { parentId: root.id, limit: 80 });
    const { key: spendKey } = await makeKey(api, key, leaf.id);
    let closedAt = Infinity;
    const made: number[] = [];
    const charge = async (n: number): Promise<void> => {
      const isLate = performance.now() > closedAt;
      const server = api.servers[n % 2] ?? api;
      const { status } = await spend(server, account, spendKey, 0.05);
      assert.ok(!isLate || status === 401, `${status} after the root was closed`);
      if (status === 201) made.push(n);
      if (!isLate) await charge(n + 8);
    };
    const charging = Array.from({ length: 8 }, (_, n) => charge(n));
    await until(() => made.length > 40);
    const closing = await call(api, 'POST', `/v1/budgets/${root.id}/close`, { key });
    closedAt = performance.now();
    assert.equal(bodyOf(closing, 200, BudgetReply).status, 'closed');
    await Promise.all(charging);
    const { balance } = bodyOf(await call(api, 'GET', '/v1/balance', { key }), 200, BalanceReply);
    const spent = made.length * 50_000;
    assert.equal(Math.round((100 - balance) * 1e6), spent);
    for (const { id } of [root, leaf]) {
      assert.equal(Math.round((await showBudget(api, key, id)).used * 1e6), spent);
    }
  });

  it('by refunds that come at once gives a budget back no more than the charge', async () => {
    const { id } = await makeBudget(api, key, { limit: 5, window: { per: 'day', limit: 5 } });
    const { key: spendKey } = await makeKey(api, key, id);
    assert.equal((await spend(api, account, spendKey, 1)).status, 201);
    const { id: chargeId } = bodyOf(await spend(api, account, spendKey, 3), 201, ChargeReply);
    const path = `/v1/charges/${chargeId}/refund`;
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        call(api.servers[n % 2] ?? api, 'POST', path, {
          key: account.developerKey,
          body: n % 3 === 0 ? {} : { amount: 1.5 },
          headers: { 'idempotency-key': n < 6 ? 'the same' : `refund ${n}` },
        }),
      ),
    );
    const refunded = answers.filter(({ status }) => status === 201);
    assert.ok(refunded.length > 0);
    const { used, window, remaining } = await showBudget(api, key, id);
    assert.deepEqual([used, window?.used, remaining], [1, 1, 4]);
  });

  it('by a key whose branch has ended is over on every server within a second', async () => {
    const root = await makeBudget(api, key, { mayDelegate: true });
    const middle = await makeBudget(api, key, { parentId: root.id });
    const leaf = await makeBudget(api, key, { parentId: middle.id });
    const [revoked, ...below] = [
      await makeKey(api, key, leaf.id),
      await makeKey(api, key, leaf.id),
      await makeKey(api, key, middle.id),
    ];
    const ends = async (keys: readonly string[]) => {
      const since = performance.now();
      for (const server of api.servers) {
        for (const each of keys) {
          const isOver = async () => (await spend(server, account, each, 0.01)).status === 401;
          await until(isOver, { timeoutMs: ENDS_MS_MAX });
          const answer = await askHold(server, { ...account, consumerKey: each });
          assertError(answer, 401, 'invalid_api_key', 'apiKey');
        }
      }
      const tookMs = performance.now() - since;
      assert.ok(tookMs < ENDS_MS_MAX, `${tookMs} ms`);
    };
    for (const server of api.servers) {
      for (const each of [revoked, ...below]) {
        assert.equal((await spend(server, account, each.key, 0.01)).status, 201);
      }
    }
    bodyOf(await call(api, 'POST', `/v1/keys/${revoked.id}/revoke`, { key }), 200, KeyReply);
    await ends([revoked.key]);
    await call(api, 'POST', `/v1/budgets/${root.id}/close`, { key });
    await ends(below.map((each) => each.key));
  });

  it('has to be quick: a new key works at once on every server', async () => {
    const { id } = await makeBudget(api, key);
    const took: number[] = [];
    for (let n = 0; n < 10; n += 1) {
      const { key: spendKey } = await makeKey(api, key, id);
      const since = performance.now();
      const answer = await spend(api.servers[n % 2] ?? api, account, spendKey, 0.01);
      took.push(performance.now() - since);
      assert.equal(answer.status, 201);
    }
    assert.ok(Math.max(...took) < WORKS_MS_MAX, took.join());
  });
});

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The text with another character at this place. */
function next(text: string, at: number): string {
  const other = BASE62[(BASE62.indexOf(text[at] ?? '') + 1) % 62] ?? '';
  return text.slice(0, at) + other + text.slice(at + 1);
}

/** Bytes of which a key with this text is composed. */
function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => BASE62.indexOf(character));
}
