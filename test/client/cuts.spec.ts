/**
 * Paid calls against the API while connections are cut at random: each is paid once, or not, as its caller
 * was told.
 */
import assert from 'node:assert/strict';
import { usd, Farebox, type BatchRequest, type FareboxError } from '@farebox/client';
import { startTestApi, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { Random, SEED } from '../support/random.ts';
import { makeCutCalls } from './cut-calls.ts';
import { CuttingProxy } from './cutting-proxy.ts';

const CALLS = 400;
const BATCHES = 20;
/** Their results are larger than what the network takes at once. */
const BATCH_SIZE = 400;

describe('client: paid calls while connections are cut', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());

  it(`are never paid twice, nor when they fail, nor free unless asked (SEED=${SEED})`, async () => {
    const account = await api.createAccount(10);
    const random = new Random(SEED);
    const { tally, cuts, leftToExpire } = await makeCutCalls(api, account, {
      calls: CALLS,
      random,
    });
    assert.ok(cuts > CALLS / 10, `${cuts} cuts`);
    assert.ok(tally.paid > CALLS / 4 && tally.failed > 0, JSON.stringify(tally));
    assert.ok(tally.free > 0 && tally['not charged'] + tally.unknown > 0, JSON.stringify(tally));
    // Only a release that was cut, too, is left to the expiry of its hold.
    assert.ok(leftToExpire < CALLS / 20, `${leftToExpire} holds`);
    await proveBooks(api.env, { processor: false });
  });

  it(`in batches are each made once when the batch is repeated with its keys (SEED=${SEED})`, async () => {
    const account = await api.createAccount(100);
    const random = new Random(SEED);
    await using proxy = await CuttingProxy.start(api.url, () => {
      const drawn = random.weighted({ none: 30, before: 1, within: 1, after: 1 });
      return drawn === 'none' ? undefined : drawn;
    });
    const settings = { secretKey: account.developerKey, baseUrl: proxy.url };
    const farebox = new Farebox(settings);
    const { consumerKey: apiKey } = account;
    const made = async (batch: number) => {
      let members: BatchRequest[] = Array.from({ length: BATCH_SIZE }, (_, n) => {
        // Each has an amount of its own, by which it is recognized.
        const amount = usd('0.000001').times(batch * BATCH_SIZE + n + 1);
        const request = { apiKey, tool: 'batch', amount };
        return n % 4 === 0 ? { op: 'hold', ...request } : request;
      });
      for (;;) {
        try {
          return await farebox.batch(members);
        } catch (error) {
          const { idempotencyKeys: keys = [] } = error as FareboxError;
          members = members.map((each, n) => ({ ...each, idempotencyKey: keys[n] }));
        }
      }
    };
    const statuses = new Set<number>();
    for (let batch = 0; batch < BATCHES; batch += 2) {
      const results = await Promise.all([made(batch), made(batch + 1)]);
      for (const { status } of results.flat()) statuses.add(status);
    }
    assert.deepEqual([...statuses], [201]);
    const { rows } = await api.sql.query<{ amount: number }>(
      `select amount_micros::int as amount from farebox.charges where tool = 'batch'
       union all select amount_micros::int from farebox.holds where tool = 'batch'`,
    );
    assert.equal(rows.length, BATCHES * BATCH_SIZE);
    assert.equal(new Set(rows.map(({ amount }) => amount)).size, BATCHES * BATCH_SIZE);
    assert.ok(proxy.cuts > 0);
    await proveBooks(api.env, { processor: false });
  });
});
