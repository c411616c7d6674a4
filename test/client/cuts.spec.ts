/**
 * Paid calls against the API while connections are cut at random: each is paid once, or not, as its caller
 * was told.
 */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { Random, SEED } from '../support/random.ts';
import { makeCutCalls } from './cut-calls.ts';

const CALLS = 400;

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
});
