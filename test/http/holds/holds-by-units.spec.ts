/** Holds by units: placed and captured by the same rate card, although the card changes meanwhile. */
import assert from 'node:assert/strict';
import { uuidOf } from '../../../src/domain/ids.ts';
import { ChargeBatchReply } from '../../../src/schemas/charge-batches.ts';
import { CaptureReply, PlacedHoldReply } from '../../../src/schemas/holds.ts';
import { VerifyReply } from '../../../src/schemas/receipts.ts';
import { ChangedToolReply, ToolReply } from '../../../src/schemas/tools.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { askCapture, askHold, keyed } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';
import { CARD, COST, UNITS } from '../../support/rate-cards.ts';

describe('a hold by units', () => {
  const api = openTestApi();
  let account: TestAccount;
  let toolId: string;

  beforeEach(async () => {
    account = await api.createAccount(10);
    const made = await post('/v1/tools', { name: 'llm', card: CARD });
    toolId = bodyOf(made, 201, ToolReply).id;
  });

  const post = (path: string, body: unknown) =>
    call(api, 'POST', path, { key: account.developerKey, body });
  const change = async (body: unknown) =>
    bodyOf(
      await call(api, 'PATCH', `/v1/tools/${toolId}`, { key: account.developerKey, body }),
      200,
      ChangedToolReply,
    );
  async function verified(receipt: string) {
    const answer = await post('/v1/receipts/verify', { receipt });
    const { valid, charge } = bodyOf(answer, 200, VerifyReply);
    assert.ok(valid);
    return charge;
  }
  const holdOf = async (changes = {}, headers = {}) =>
    bodyOf(
      await askHold(
        api,
        account,
        { tool: 'llm', amount: undefined, units: UNITS, ...changes },
        headers,
      ),
      201,
      PlacedHoldReply,
    );

  it('reserves the cost of the most units, and captures the cost of those that were used', async () => {
    const hold = await holdOf();
    assert.equal(hold.amount, COST);
    const body = { units: { input: 1_200, output: 35 } };
    const answer = await askCapture(api, account, hold.id, body, keyed('capture-1'));
    const captured = bodyOf(answer, 201, CaptureReply);
    assert.partialDeepStrictEqual(captured, {
      amount: 0.00335,
      cardVersion: 1,
      balance: 9.99665,
      hold: { status: 'captured', remaining: 0 },
    });
    assert.partialDeepStrictEqual(await verified(captured.receipt), {
      cardVersion: 1,
      amount: 0.00335,
    });
    await change({ card: null });
    const again = await askCapture(api, account, hold.id, body, keyed('capture-1'));
    assert.equal(bodyOf(again, 201, CaptureReply).receipt, captured.receipt);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    const other = { units: { input: 1 } };
    assertError(
      await askCapture(api, account, hold.id, other, keyed('capture-1')),
      422,
      'idempotency_key_reused',
    );
  });

  it('is captured by the card that priced it', async () => {
    const used = { output: 35 };
    const holds = await Promise.all([holdOf(), holdOf(), holdOf()]);
    const captureOf = async ({ id }: { readonly id: string }) =>
      bodyOf(await askCapture(api, account, id, { units: used }), 201, CaptureReply);
    await change({ card: { output: 1 } });
    const amounts = [await captureOf(holds[0])];
    await change({ card: null });
    amounts.push(await captureOf(holds[1]));
    await change({ archived: true });
    amounts.push(await captureOf(holds[2]));
    assert.deepEqual(
      amounts.map(({ amount, cardVersion }) => [amount, cardVersion]),
      [
        [0.00035, 1],
        [0.00035, 1],
        [0.00035, 1],
      ],
    );
  });

  it('is captured by the card that priced it, also if that was no longer the current one', async () => {
    const { id, amount } = await holdOf();
    // As another process does that does not know the new card yet.
    await change({ card: { input: 1, output: 1 } });
    await api.sql.query('update farebox.holds set placed_at = clock_timestamp() where id = $1', [
      uuidOf('hold', id),
    ]);
    const answer = await askCapture(api, account, id, { units: UNITS });
    const captured = bodyOf(answer, 201, CaptureReply);
    assert.deepEqual([captured.amount, captured.cardVersion], [amount, 1]);
  });

  it('by an amount is captured by the current card', async () => {
    const { id } = bodyOf(
      await askHold(api, account, { tool: 'llm', amount: 5 }),
      201,
      PlacedHoldReply,
    );
    await change({ card: { output: 0.1 } });
    const body = { units: { output: 2 }, final: false };
    const capture = () => askCapture(api, account, id, body, keyed('part-1'));
    const captured = bodyOf(await capture(), 201, CaptureReply);
    assert.deepEqual([captured.amount, captured.cardVersion], [0.2, 2]);
    await change({ card: null });
    assert.equal(bodyOf(await capture(), 201, CaptureReply).receipt, captured.receipt);
    assertError(await askCapture(api, account, id, body), 400, 'invalid_request', 'units');
    await change({ archived: true });
    assertError(await askCapture(api, account, id, body), 400, 'tool_archived', 'tool');
  });

  it('is captured by units also with a thousand others in one request', async () => {
    const asked = { apiKey: account.consumerKey, tool: 'llm', units: { input: 1 } };
    const placed = bodyOf(
      await post('/v1/charges/batch', {
        charges: Array.from({ length: 1_000 }, () => ({ op: 'hold', ...asked })),
      }),
      200,
      ChargeBatchReply,
    );
    const charges = placed.results.map((result) => ({
      op: 'capture',
      holdId: 'hold' in result ? result.hold.id : '',
      units: { input: 1 },
    }));
    const { results } = bodyOf(await post('/v1/charges/batch', { charges }), 200, ChargeBatchReply);
    assert.deepEqual(new Set(results.map(({ status }) => status)), new Set([201]));
  });

  it('is not captured by units that have no cost, or that exceed it', async () => {
    const { id } = await holdOf();
    await api.changingNothing(async () => {
      const capture = (body: unknown) => askCapture(api, account, id, body);
      assertError(await capture({ units: UNITS, amount: 1 }), 400, 'invalid_request', 'units');
      assertError(await capture({ units: { image: 1 } }), 400, 'invalid_request', 'units.image');
      assertError(await capture({ units: { input: 0 } }), 400, 'invalid_amount', 'units', {
        required: 0,
      });
      assertError(await capture({ units: { output: 651 } }), 402, 'exceeds_hold', 'amount', {
        remaining: COST,
      });
      const unknown = `hld_${'0'.repeat(32)}`;
      assertError(await askCapture(api, account, unknown, { units: UNITS }), 404, 'hold_not_found');
    });
  });

  it('places the same hold for the same key, even when the card has changed', async () => {
    const headers = keyed('hold-1');
    const first = await holdOf({}, headers);
    await change({ card: { input: 1 } });
    assert.deepEqual(await holdOf({}, headers), first);
  });
});
