/** What refund() sends, and how it handles each way in which the service can answer. */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { Farebox, type FareboxError, type RefundRequest } from '@farebox/client';
import {
  ScriptedService,
  answer,
  droppedLine,
  raised,
  refusal,
  silence,
  type Step,
} from './scripted-service.ts';

const secretKey = 'fare_sk_live_theDeveloper';
const REFUND = {
  id: 'rf_1',
  chargeId: 'chg_1',
  amount: 0.01,
  refunded: 0.02,
  createdAt: '2026-11-21T08:00:00.000Z',
};
const refunded = answer(201, REFUND);
const half = { chargeId: 'chg_1', amount: 0.01 };

async function service(...script: [Step, ...Step[]]) {
  const scripted = await ScriptedService.start(...script);
  const farebox = new Farebox({ secretKey, baseUrl: scripted.url });
  return Object.assign(scripted, { farebox });
}

describe('client: a refund', () => {
  it('names the charge and the amount, and resolves with the refund', async () => {
    await using api = await service(refunded);
    assert.deepEqual(await api.farebox.refund(half), { ...REFUND, replayed: false });
    const [request] = api.seen;
    assert.equal(request?.method, 'POST');
    assert.equal(request.path, '/v1/charges/chg_1/refund');
    assert.equal(request.headers.authorization, `Bearer ${secretKey}`);
    assert.deepEqual(request.body, { amount: 0.01 });
  });

  it('omits the amount to refund all that is left', async () => {
    await using api = await service(refunded);
    await api.farebox.refund({ chargeId: 'chg_1' });
    assert.deepEqual(api.seen[0]?.body, {});
  });

  it('has its own key for each call, or the given one', async () => {
    await using api = await service(refunded);
    await api.farebox.refund(half);
    await api.farebox.refund(half);
    await api.farebox.refund({ ...half, idempotencyKey: 'job-7' });
    assert.match(String(api.keys[0]), /^[0-9a-f-]{36}$/);
    assert.notEqual(api.keys[0], api.keys[1]);
    assert.equal(api.keys[2], 'job-7');
  });

  it('says when it was already made before', async () => {
    await using api = await service(answer(201, REFUND, { 'idempotency-replayed': 'true' }));
    assert.equal((await api.farebox.refund(half)).replayed, true);
  });

  for (const [name, step] of [
    ['503 with Retry-After', refusal(503, 'service_unavailable')],
    ['500', refusal(500, 'outcome_unknown')],
    ['a dropped line', droppedLine],
    ['no answer in time', silence],
    ['half an answer', answer(201, '{"id":"rf_1"')],
  ] as const) {
    it(`is sent again after ${name}, with the same idempotency key`, async () => {
      await using api = await service(step, refunded);
      // Only silence is cut short: the answer that follows may take as long on a busy machine.
      const options = { timeoutMs: step === silence ? 3_000 : 60_000 };
      assert.equal((await api.farebox.refund(half, options)).id, REFUND.id);
      assert.equal(api.seen.length, 2);
      assert.equal(api.keys[0], api.keys[1]);
    });
  }

  it('raises refund_exceeds_charge at once, with what is left', async () => {
    await using api = await service(refusal(400, 'refund_exceeds_charge', { refundable: 0.005 }));
    const error = await raised(api.farebox.refund(half));
    assert.deepEqual(
      [error.code, error.refundable, error.outcome],
      ['refund_exceeds_charge', 0.005, 'not_refunded'],
    );
    assert.equal(api.seen.length, 1);
  });

  const outcomes: [string, FareboxError['outcome'], [Step, ...Step[]]][] = [
    ['a full queue', 'not_refunded', [refusal(503, 'service_unavailable')]],
    ['a lost answer', 'unknown', [droppedLine]],
    ['a lost answer, then a full queue', 'unknown', [droppedLine, refusal(503, 'x')]],
    [
      'a lost answer, then too much',
      'not_refunded',
      [droppedLine, refusal(400, 'refund_exceeds_charge')],
    ],
  ];
  for (const [name, outcome, script] of outcomes) {
    it(`reports ${name} as ${outcome}`, async () => {
      await using api = await service(...script);
      const error = await raised(api.farebox.refund(half));
      assert.equal(error.outcome, outcome);
      assert.equal(error.idempotencyKey, api.keys[0]);
    });
  }

  it('raises service_unavailable, not refunded, when nothing listens', async () => {
    const api = await service(refunded);
    await api.close();
    const error = await raised(api.farebox.refund(half));
    assert.deepEqual([error.code, error.outcome], ['service_unavailable', 'not_refunded']);
    assert.match(error.message, /nothing was refunded \(ECONNREFUSED\)/);
  });

  type Wrong = [code: string, fields: Partial<Record<keyof RefundRequest, unknown>>];
  const unsendable: Wrong[] = [
    ...[undefined, '', 7, 'chg_', '../balance', 'chg_1/../x', 'tu_1'].map((chargeId): Wrong => [
      'not_found',
      { chargeId },
    ]),
    ...[NaN, Infinity, true, 1n].map((amount): Wrong => ['invalid_amount', { amount }]),
    ...['', ' a', 'é', 'a\r\nx: y', 'x'.repeat(256)].map((idempotencyKey): Wrong => [
      'invalid_idempotency_key',
      { idempotencyKey },
    ]),
  ];
  for (const [code, wrong] of unsendable) {
    it(`raises ${code} for ${inspect(wrong).slice(0, 40)}, and sends nothing`, async () => {
      await using api = await service(refunded);
      const error = await raised(api.farebox.refund({ ...half, ...wrong } as RefundRequest));
      assert.equal(error.code, code);
      assert.equal(api.seen.length, 0);
    });
  }
});
