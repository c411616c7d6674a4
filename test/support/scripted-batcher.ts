/** A batcher over statements that the test answers, and charges for it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { DatabaseError } from 'pg';
import { Batcher, type BatcherOptions } from '../../src/charging/batcher.ts';
import { ChargeFailure, type ChargeFailureKind } from '../../src/charging/charge-failure.ts';
import { asMicros } from '../../src/domain/money.ts';
import type { ChargeDraft, ChargeOutcome } from '../../src/store/charges/post-charges.ts';

/** A statement that the batcher has sent, to be answered by the test. */
export interface Flush {
  readonly drafts: readonly ChargeDraft[];
  readonly tools: readonly string[];
  readonly sent: () => void;
  /** Decides every draft as posted. */
  readonly succeed: () => void;
  readonly fail: (error: unknown) => void;
}

export const stays = { isAbandoned: () => false };
export const gone = { isAbandoned: () => true };

export function openBatcher(options: Partial<BatcherOptions<ChargeDraft, ChargeOutcome>> = {}) {
  const flushes: Flush[] = [];
  const failures: unknown[] = [];
  const batcher = new Batcher<ChargeDraft, ChargeOutcome>({
    payerOf: ({ consumerId }) => consumerId,
    execute: (drafts, onSent) =>
      new Promise((resolve, reject) => {
        flushes.push({
          drafts,
          tools: drafts.map(({ tool }) => tool),
          sent: onSent,
          succeed: () => resolve(drafts.map(posted)),
          fail: reject,
        });
      }),
    decide: () => assert.fail('nothing was left to decide'),
    findLocked: async () => new Set(),
    onFailure: (error) => failures.push(error),
    laneCount: 1,
    batchMax: 100,
    shareMax: 100,
    queueMax: 100,
    queueMaxByDeveloper: 100,
    deadlineMs: 60_000,
    ...options,
  });
  return {
    flushes,
    failures,
    post: (draft: ChargeDraft, requester = stays) => batcher.post(draft, requester),
    /** The n-th statement, once it is sent. */
    flush: async (index: number): Promise<Flush> => {
      while (!flushes[index]) await turn();
      return flushes[index];
    },
  };
}

/** For the consumer with this number; `tool` tells the charges of a test apart. */
export function newDraft(
  tool: string,
  {
    consumer = 0,
    developer = 1,
    key,
  }: { consumer?: number; developer?: number; key?: string } = {},
) {
  return {
    id: randomUUID(),
    ledger: 0,
    consumerId: `01900000-0000-7000-8000-00000000${consumer.toString(16).padStart(4, '0')}`,
    developerId: `01900000-0000-7000-8000-00000000000${developer}`,
    developerNumber: developer,
    tool,
    amountMicros: asMicros(1),
    idempotencyHash: key ?? null,
    fingerprint: key === undefined ? null : '0000000001',
    metadata: null,
    spend: null,
  };
}

export function posted({ id, amountMicros }: ChargeDraft): ChargeOutcome {
  return {
    kind: 'posted',
    id,
    amountMicros,
    balanceMicros: asMicros(0),
    cardVersion: 0,
    receiptKey: 1,
  };
}

export function withoutKey(drafts: readonly ChargeDraft[], consumerId: string): ChargeDraft[] {
  return drafts.filter((d) => d.consumerId === consumerId && d.idempotencyHash === null);
}

export function postgresError(code: string): Error {
  // Slonik wraps Postgres's error.
  const refused = Object.assign(new DatabaseError('refused', 7, 'error'), { code });
  return new Error('query failed', { cause: refused });
}

export async function assertFails(
  promise: Promise<unknown>,
  kind: ChargeFailureKind,
): Promise<ChargeFailure> {
  const error: unknown = await promise.then(
    () => assert.fail('it did not fail'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ChargeFailure, String(error));
  assert.equal(error.kind, kind);
  return error;
}

export async function assertAllFail(
  promises: readonly Promise<unknown>[],
  kind: ChargeFailureKind,
): Promise<ChargeFailure[]> {
  return Promise.all(promises.map((promise) => assertFails(promise, kind)));
}

export async function assertPosted(
  promise: Promise<ChargeOutcome>,
  { id }: ChargeDraft,
): Promise<void> {
  const outcome = await promise;
  assert.equal('id' in outcome && outcome.id, id);
}

/** Until this much time has passed: the batcher's clock is the real one. */
export async function waitFor(ms: number): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) await turn();
}
