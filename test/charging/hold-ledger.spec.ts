/** Group commit of holds: which entries share a flush, in which order, and what happens when the database fails. */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { HoldLedger, withTailOf, type HoldLedgerOptions } from '../../src/charging/hold-ledger.ts';
import type { HoldEntry, HoldOutcome } from '../../src/store/holds/post-hold-entries.ts';
import { placing, releasing } from '../support/hold-drafts.ts';
import { until } from '../support/stack.ts';

const CONSUMER = { ledger: 0, consumerId: randomUUIDv7() };
const DECIDED: HoldOutcome = { kind: 'unknown_hold' };

/** How Postgres reports data that it rejects. */
class DataError extends Error {
  readonly code = '22P05';
}

function open(options: Partial<HoldLedgerOptions> = {}) {
  const flushes: (readonly HoldEntry[])[] = [];
  const pending: PromiseWithResolvers<void>[] = [];
  const ledger = new HoldLedger({
    execute: async (entries) => {
      flushes.push(entries);
      const flush = Promise.withResolvers<void>();
      pending.push(flush);
      await flush.promise;
      return entries.map(() => DECIDED);
    },
    settle: async () => DECIDED,
    laneCount: 1,
    batchMax: 3,
    queueMax: 5,
    deadlineMs: 60_000,
    ...options,
  });
  /** Resolves when the statement with that number is in flight, with a function that ends it. */
  const end = async (number: number, error?: Error) => {
    const flush = await until(() => pending[number], { intervalMs: 1 });
    if (error) flush.reject(error);
    else flush.resolve();
  };
  return { ledger, flushes, end };
}

describe('the hold ledger', () => {
  it('sends the entries that waited for a flush together, in order, up to a batch', async () => {
    const { ledger, flushes, end } = open();
    const entries = Array.from({ length: 5 }, (_, n) => placing(CONSUMER, n + 1));
    const first = ledger.post(entries[0] as HoldEntry);
    await until(() => flushes.length === 1, { intervalMs: 1 });
    const others = entries.slice(1).map((entry) => ledger.post(entry));
    for (const number of [0, 1, 2]) await end(number);
    assert.deepEqual(
      await Promise.all([first, ...others]),
      entries.map(() => DECIDED),
    );
    assert.deepEqual(flushes, [entries.slice(0, 1), entries.slice(1, 4), entries.slice(4)]);
  });

  it('never sends an idempotency key twice in one flush', async () => {
    const { ledger, flushes, end } = open();
    const keyed = { ...placing(CONSUMER, 1), idempotencyHash: 'a'.repeat(22) };
    const posts = [keyed, placing(CONSUMER, 2), keyed].map((entry) => ledger.post(entry));
    for (const number of [0, 1]) await end(number);
    await Promise.all(posts);
    assert.deepEqual(
      flushes.map((flush) => flush.length),
      [2, 1],
    );
  });

  it('fails only the entry that the database rejects', async () => {
    const { ledger, end } = open();
    const posts = Promise.allSettled(
      [1, 2].map((micros) => ledger.post(placing(CONSUMER, micros))),
    );
    await end(0, new DataError('no such text'));
    await end(1, new DataError('no such text'));
    await end(2);
    const [failed, made] = await posts;
    assert.equal(failed?.status, 'rejected');
    assert.deepEqual(made, { status: 'fulfilled', value: DECIDED });
  });

  it('tells every entry of the flush when the connection is lost, and sends nothing again', async () => {
    const { ledger, flushes, end } = open();
    const posts = Promise.allSettled(
      [1, 2].map((micros) => ledger.post(placing(CONSUMER, micros))),
    );
    await end(0, new Error('the connection was lost'));
    const settled = await posts;
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(flushes.length, 1);
  });

  it('processes an entry whose consumer has a debt alone, and only that one waits for it', async () => {
    const debt = Promise.withResolvers<HoldOutcome>();
    const { ledger } = open({
      execute: async () => [DECIDED, 'owing'],
      settle: () => debt.promise,
    });
    const [decided, owing] = [1, 2].map((micros) => ledger.post(placing(CONSUMER, micros)));
    assert.deepEqual(await decided, DECIDED);
    debt.reject(new DataError('no such text'));
    await assert.rejects(owing as Promise<HoldOutcome>, DataError);
  });

  it('refuses at once an entry that would wait behind too many', async () => {
    const { ledger, flushes, end } = open();
    const first = ledger.post(placing(CONSUMER, 1));
    await until(() => flushes.length === 1, { intervalMs: 1 });
    const waiting = [1, 2, 3, 4, 5].map((micros) => ledger.post(placing(CONSUMER, micros)));
    await assert.rejects(ledger.post(placing(CONSUMER, 6)), { kind: 'not_made' });
    for (const number of [0, 1, 2]) await end(number);
    await Promise.all([first, ...waiting]);
  });

  it('drops entries that waited too long, unsent', async () => {
    const { ledger, flushes, end } = open({ deadlineMs: 5 });
    const first = ledger.post(placing(CONSUMER, 1));
    await until(() => flushes.length === 1, { intervalMs: 1 });
    const late = assert.rejects(ledger.post(placing(CONSUMER, 2)), { kind: 'not_made' });
    const since = performance.now();
    await until(() => performance.now() - since > 10, { intervalMs: 1 });
    await end(0);
    await first;
    await late;
    assert.equal(flushes.length, 1);
  });

  it('puts a hold into the lane of its consumer', async () => {
    const { ledger, flushes, end } = open({ laneCount: 16, batchMax: 10 });
    const posts = [
      ledger.post(placing(CONSUMER, 1)),
      ledger.post(releasing(withTailOf(CONSUMER.consumerId, randomUUIDv7()))),
    ];
    await end(0);
    await Promise.all(posts);
    assert.equal(flushes.length, 1);
  });
});
