/** The requests that place, capture and release holds, and how each answer is handled. */
import assert from 'node:assert/strict';
import { Farebox, usd } from '@farebox/client';
import {
  CHARGE,
  ScriptedService,
  answer,
  droppedLine,
  raised,
  refusal,
  type Step,
} from './scripted-service.ts';

const apiKey = 'fare_ck_live_x';
const HOLD = { id: 'hld_1', tool: 'search', amount: 1, captured: 0, remaining: 1, status: 'open' };
const placed = answer(201, { ...HOLD, balance: 9 });
const captured = answer(201, { ...CHARGE, holdId: HOLD.id, hold: { ...HOLD, status: 'captured' } });

async function service(...script: [Step, ...Step[]]) {
  const scripted = await ScriptedService.start(...script);
  const { holds } = new Farebox({ secretKey: 'fare_sk_live_x', baseUrl: scripted.url });
  return Object.assign(scripted, { holds });
}

describe('client: holds', () => {
  it('are placed, extended, captured and released, each with a key of its own', async () => {
    await using api = await service(placed, answer(200, HOLD), captured, answer(200, HOLD));
    const hold = await api.holds.place({ apiKey, tool: 'search', amount: usd(1), expiresIn: 60 });
    assert.deepEqual(hold, { ...HOLD, balance: 9, replayed: false });
    await api.holds.extend({ holdId: hold.id, expiresIn: 600 });
    const capture = await api.holds.capture({ holdId: hold.id, amount: '0.4', over: 'cap' });
    assert.deepEqual([capture.id, capture.holdId], [CHARGE.id, HOLD.id]);
    await api.holds.release({ holdId: hold.id, idempotencyKey: 'job-7' });
    assert.deepEqual(
      api.seen.map(({ path, body }) => [path, body]),
      [
        ['/v1/holds', { apiKey, tool: 'search', amount: '1.000000', expiresIn: 60 }],
        ['/v1/holds/hld_1/extend', { expiresIn: 600 }],
        ['/v1/holds/hld_1/capture', { amount: '0.4', over: 'cap' }],
        ['/v1/holds/hld_1/release', {}],
      ],
    );
    assert.equal(new Set(api.keys).size, 4);
    assert.equal(api.keys[3], 'job-7');
  });

  it('are captured by the same key after a lost answer', async () => {
    await using api = await service(droppedLine, captured);
    await api.holds.capture({ holdId: HOLD.id });
    assert.equal(api.keys[0], api.keys[1]);
  });

  it('are not captured when they are closed, even when the retry after a lost answer says so', async () => {
    await using api = await service(
      droppedLine,
      refusal(409, 'hold_closed', { status: 'expired' }),
    );
    const error = await raised(api.holds.capture({ holdId: HOLD.id }));
    assert.deepEqual(
      [error.code, error.status, error.objectStatus, error.outcome],
      ['hold_closed', 409, 'expired', 'not_charged'],
    );
    assert.equal(api.seen.length, 2);
  });

  it('state the remainder when a capture exceeds it', async () => {
    await using api = await service(refusal(402, 'exceeds_hold', { remaining: 0.5 }));
    const error = await raised(api.holds.capture({ holdId: HOLD.id, amount: 2 }));
    assert.deepEqual([error.code, error.remaining], ['exceeds_hold', 0.5]);
  });

  it('are unknown when no answer comes to their placing', async () => {
    await using api = await service(droppedLine);
    const error = await raised(api.holds.place({ apiKey, tool: 'search', amount: 1 }));
    assert.deepEqual([error.code, error.outcome], ['service_unavailable', 'unknown']);
    assert.equal(error.idempotencyKey, api.keys[0]);
    await api.close();
    const none = await raised(api.holds.place({ apiKey, tool: 'search', amount: 1 }));
    assert.equal(none.outcome, 'not_held');
  });

  it('are listed page by page, with their metadata', async () => {
    const listed = { ...HOLD, metadata: { job: 7 } };
    const last = { holds: [listed], hasMore: false, nextCursor: null };
    await using api = await service(
      answer(200, { holds: [listed], hasMore: true, nextCursor: 'next' }),
      answer(200, last),
    );
    const { nextCursor, holds } = await api.holds.list({ status: 'open' }).page();
    assert.deepEqual([nextCursor, holds[0]?.metadata?.['job']], ['next', 7]);
    assert.deepEqual(await api.holds.list({ status: 'open' }).page(nextCursor ?? ''), last);
    assert.deepEqual(
      api.seen.map(({ path }) => path),
      ['/v1/holds?status=open', '/v1/holds?status=open&cursor=next'],
    );
  });

  it('need a consumer key, and send nothing without one', async () => {
    await using api = await service(placed);
    const error = await raised(api.holds.place({ apiKey: undefined, tool: 'search', amount: 1 }));
    assert.deepEqual([error.code, error.status], ['invalid_api_key', 401]);
    assert.equal(api.seen.length, 0);
  });
});
