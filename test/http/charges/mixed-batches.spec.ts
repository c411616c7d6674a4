/** Charges and holds in one request: each is answered as if it had been sent alone, in the order of the request. */
import assert from 'node:assert/strict';
import { ChargeBatchReply } from '../../../src/schemas/charge-batches.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { makeBudget, makeKey } from '../../support/budget-requests.ts';
import { bodyOf, call, charge } from '../../support/http.ts';
import { askCapture, askHold, keyed, place, show } from '../../support/hold-requests.ts';

type Member = Readonly<Record<string, unknown>>;

describe('POST /v1/charges/batch with holds', () => {
  const api = openTestApi();
  let account: TestAccount;

  beforeEach(async () => {
    account = await api.createAccount(10);
  });

  async function post(members: readonly unknown[]) {
    const body = { charges: members };
    const answer = await call(api, 'POST', '/v1/charges/batch', {
      key: account.developerKey,
      body,
    });
    return bodyOf(answer, 200, ChargeBatchReply).results;
  }
  const asking = (op: string | undefined, amount: number | undefined, more: Member = {}) => ({
    op,
    apiKey: account.consumerKey,
    tool: 'search',
    amount,
    ...more,
  });

  it('decides charges, holds and releases in the order of the request', async () => {
    const { id } = await place(api, account, { amount: 10 });
    const results = await post([
      asking('charge', 1),
      { op: 'release', holdId: id },
      asking(undefined, 1),
      asking('hold', 9.5),
      asking('hold', 9),
      asking('charge', 0.000001),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      [402, 200, 201, 402, 201, 402],
    );
    const [refused, released, made, , placed] = results;
    assert.partialDeepStrictEqual(refused, { error: { code: 'insufficient_balance', balance: 0 } });
    assert.partialDeepStrictEqual(released, { hold: { id, status: 'released' } });
    assert.partialDeepStrictEqual(made, { amount: 1, balance: 9 });
    assert.partialDeepStrictEqual(placed, { hold: { amount: 9, remaining: 9, balance: 0 } });
  });

  it('keeps the order of the request when a charge has the key of a hold, or of a refused charge', async () => {
    const { id } = await place(api, account, { amount: 2 });
    const same = { idempotencyKey: 'order-1' };
    const results = await post([
      asking('hold', 4, same),
      asking('charge', 4, same),
      asking('charge', 4),
      { op: 'release', holdId: id },
      asking('charge', 2),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      [201, 201, 402, 200, 201],
    );
    const more = await api.createAccount(10);
    const by = (amount: number, keys: Member = {}) =>
      asking('charge', amount, { apiKey: more.consumerKey, ...keys });
    const again = await post([
      by(11, same),
      by(8, same),
      by(8),
      by(2),
      asking('hold', 0.5, { apiKey: more.consumerKey }),
    ]);
    assert.deepEqual(
      again.map(({ status }) => status),
      [402, 201, 402, 201, 402],
    );
  });

  it('captures in parts, with what each capture may say', async () => {
    const { id: holdId } = await place(api, account, { amount: 2 });
    const results = await post([
      { op: 'capture', holdId, amount: 0.5, final: false, metadata: { part: 1 } },
      { op: 'capture', holdId, amount: 3 },
      { op: 'capture', holdId, amount: 3, over: 'cap' },
      { op: 'capture', holdId },
    ]);
    assert.partialDeepStrictEqual(results, [
      // The hold is shown as it is in the end.
      { status: 201, amount: 0.5, balance: 8, holdId, hold: { status: 'captured', remaining: 0 } },
      { status: 402, error: { code: 'exceeds_hold', remaining: 1.5 } },
      { status: 201, amount: 1.5, balance: 8, hold: { status: 'captured', captured: 2 } },
      { status: 409, error: { code: 'hold_closed', status: 'captured' } },
    ]);
  });

  it('shows a hold as it is in the end, even if the ledger decides the batch in steps', async () => {
    const { id: holdId } = await place(api, account, { amount: 2 });
    // What repeats a key waits for the next flush, and so does what follows it.
    const part = { op: 'capture', holdId, amount: 0.5, final: false, idempotencyKey: 'part' };
    const again = asking('hold', 1, { idempotencyKey: 'hold' });
    const results = await post([part, again, part, again, { op: 'capture', holdId, amount: 1 }]);
    const end = { status: 'captured', captured: 1.5, remaining: 0 };
    const open = { status: 'open', captured: 0, remaining: 1 };
    assert.partialDeepStrictEqual(results, [
      { status: 201, amount: 0.5, hold: end },
      { status: 201, hold: { ...open, balance: 7 } },
      { status: 201, replayed: true, amount: 0.5, hold: end },
      { status: 201, replayed: true, hold: open },
      { status: 201, amount: 1, hold: end },
    ]);
  });

  it('does each thing once for its key, and shares the keys with single requests', async () => {
    const { id: holdId } = await place(api, account, { amount: 2 });
    const members = [
      asking('charge', 1, { idempotencyKey: 'charge' }),
      asking('hold', 1, { idempotencyKey: 'hold' }),
      { op: 'capture', holdId, amount: 0.5, idempotencyKey: 'capture' },
    ];
    const single = [
      await charge(api, account, { amount: 1 }, keyed('charge')),
      await askHold(api, account, { amount: 1 }, keyed('hold')),
      await askCapture(api, account, holdId, { amount: 0.5 }, keyed('capture')),
    ];
    const [made, { balance: _, ...placed }, captured] = single.map(({ body }) => body) as [
      Member,
      Member,
      Member,
    ];
    for (const results of [await post(members), await post([...members, asking('hold', 8)])]) {
      assert.partialDeepStrictEqual(results.slice(0, 3), [
        { status: 201, replayed: true, ...made },
        { status: 201, replayed: true, hold: placed },
        { status: 201, replayed: true, ...captured },
      ]);
    }
    const others = await post(members.map((member) => ({ ...member, amount: 0.25 })));
    for (const result of others) {
      assert.partialDeepStrictEqual(result, {
        status: 422,
        error: { code: 'idempotency_key_reused' },
      });
    }
  });

  it('releases a hold by a member with an idempotency key, which changes nothing', async () => {
    const { id: holdId } = await place(api, account, { amount: 1 });
    const release = { op: 'release', holdId, idempotencyKey: 'release' };
    const released = { status: 200, hold: { status: 'released', remaining: 0 } };
    assert.partialDeepStrictEqual(await post([release, release]), [released, released]);
    assert.partialDeepStrictEqual(await post([release]), [released]);
  });

  it('gives each malformed member its own error, and does the others', async () => {
    const { id: holdId } = await place(api, account, { amount: 1 });
    const stranger = await api.createAccount(10);
    const strange = await place(api, stranger, { amount: 1 });
    const results = await post([
      asking('refund', 1),
      asking('constructor', 1),
      { op: null },
      { op: 'capture' },
      { op: 'capture', holdId: 'hld_x' },
      { op: 'capture', holdId: strange.id },
      { op: 'release', holdId: 7 },
      { op: 'release', holdId, idempotencyKey: ' ' },
      { op: 'capture', holdId, amount: 0 },
      { op: 'capture', holdId, over: 'more' },
      asking('hold', 1, { apiKey: 'x' }),
      asking('hold', 1, { expiresIn: 0 }),
      asking('hold', undefined, { tool: 'none' }),
      asking('hold', 1, { idempotencyKey: '' }),
      { op: 'capture', holdId, amount: 0.25 },
    ]);
    assert.deepEqual(
      results.map((result) =>
        'error' in result ? [result.error.code, result.error.param] : result.status,
      ),
      [
        ['invalid_request', 'op'],
        ['invalid_request', 'op'],
        ['invalid_request', 'op'],
        ['invalid_request', 'holdId'],
        ['hold_not_found', undefined],
        ['hold_not_found', undefined],
        ['invalid_request', 'holdId'],
        ['invalid_idempotency_key', undefined],
        ['invalid_amount', 'amount'],
        ['invalid_request', 'over'],
        ['invalid_api_key', 'apiKey'],
        ['invalid_request', 'expiresIn'],
        ['unknown_tool', 'tool'],
        ['invalid_idempotency_key', undefined],
        201,
      ],
    );
    assert.equal((await show(api, stranger, strange.id)).status, 'open');
  });

  it('counts what a spend key charges and reserves at its budget', async () => {
    const budget = await makeBudget(api, account.consumerKey, { limit: 3 });
    const { key: apiKey } = await makeKey(api, account.consumerKey, budget.id);
    const results = await post([
      asking('charge', 1, { apiKey }),
      asking('hold', 1.5, { apiKey }),
      asking('charge', 1, { apiKey }),
      asking('charge', 0.5, { apiKey }),
    ]);
    assert.deepEqual(
      results.map((result) => ('error' in result ? result.error.code : result.status)),
      [201, 201, 'spend_limit_reached', 201],
    );
  });

  it('does a thousand things', async () => {
    const { id: holdId } = await place(api, account, { amount: 5 });
    const one = { op: 'capture', holdId, amount: 0.01, final: false };
    const results = await post([
      ...Array.from({ length: 400 }, () => one),
      ...Array.from({ length: 400 }, () => asking('charge', 0.01)),
      ...Array.from({ length: 200 }, () => asking('hold', 0.01)),
    ]);
    const made = results.filter(({ status }) => status === 201);
    assert.equal(made.length, 400 + 400 + 100);
  });
});
