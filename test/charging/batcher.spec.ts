/** The batcher against a ledger that answers when the test says so: order, bounds, and honest failures. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import * as fc from 'fast-check';
import { ChargeBatcher, type BatcherOptions } from '../../src/charging/batcher.ts';
import { ApiError, type ErrorCode } from '../../src/domain/errors.ts';
import { asMicros } from '../../src/domain/money.ts';
import type { ChargeDraft, ChargeOutcome } from '../../src/store/charges/post-charges.ts';

/** A statement that the batcher has asked for, to be answered by the test. */
interface Flush {
  readonly drafts: readonly ChargeDraft[];
  readonly tools: readonly string[];
  readonly sent: () => void;
  /** Decides every draft as posted. */
  readonly succeed: () => void;
  readonly fail: (error: unknown) => void;
}

const stays = { isAbandoned: () => false };
const gone = { isAbandoned: () => true };

function open(options: Partial<BatcherOptions> = {}) {
  const flushes: Flush[] = [];
  const failures: unknown[] = [];
  const batcher = new ChargeBatcher({
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
    onFailure: (error) => failures.push(error),
    laneCount: 1,
    batchMax: 100,
    queueMax: 100,
    deadlineMs: 60_000,
    ...options,
  });
  return {
    flushes,
    failures,
    post: (draft: ChargeDraft, requester = stays) => batcher.post(draft, requester),
    /** The n-th statement, once it is asked for. */
    flush: async (index: number): Promise<Flush> => {
      while (!flushes[index]) await turn();
      return flushes[index];
    },
  };
}

/** Of the consumer with this number; `tool` tells the charges of a test apart. */
function draft(tool: string, { consumer = 0, key }: { consumer?: number; key?: string } = {}) {
  return {
    id: randomUUID(),
    ledger: 0,
    consumerId: `01900000-0000-7000-8000-00000000${consumer.toString(16).padStart(4, '0')}`,
    developerId: '01900000-0000-7000-8000-000000000001',
    developerNumber: 1,
    tool,
    amountMicros: asMicros(1),
    idempotencyHash: key ?? null,
    fingerprint: key === undefined ? null : '0000000001',
    metadata: null,
  };
}

function posted({ id, amountMicros }: ChargeDraft): ChargeOutcome {
  return { kind: 'posted', id, amountMicros, balanceMicros: asMicros(0), receiptKey: 1 };
}

function withoutKey(drafts: readonly ChargeDraft[], consumerId: string): ChargeDraft[] {
  return drafts.filter((d) => d.consumerId === consumerId && d.idempotencyHash === null);
}

function postgresError(code: string): Error {
  // Slonik wraps what Postgres said.
  return new Error('query failed', { cause: Object.assign(new Error('refused'), { code }) });
}

async function assertRefused(promise: Promise<unknown>, code: ErrorCode): Promise<ApiError> {
  const error: unknown = await promise.then(
    () => assert.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ApiError, String(error));
  assert.equal(error.code, code);
  return error;
}

async function assertAllRefused(
  promises: readonly Promise<unknown>[],
  code: ErrorCode,
): Promise<ApiError[]> {
  return Promise.all(promises.map((promise) => assertRefused(promise, code)));
}

async function assertPosted(promise: Promise<ChargeOutcome>, { id }: ChargeDraft): Promise<void> {
  const outcome = await promise;
  assert.equal('id' in outcome && outcome.id, id);
}

/** Until so much time is over: the batcher's clock is the real one. */
async function waitFor(ms: number): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) await turn();
}

describe('ChargeBatcher', () => {
  it('sends a charge at once when nothing is in flight', async () => {
    const { post, flush } = open();
    const only = draft('only');
    const answer = post(only);
    (await flush(0)).succeed();
    await assertPosted(answer, only);
  });

  it('sends together, in order of arrival, what came while a statement was in flight', async () => {
    const { post, flush, flushes } = open();
    const drafts = ['a', 'b', 'c', 'd'].map((tool) => draft(tool));
    const first = post(drafts[0]!);
    const one = await flush(0);
    const rest = drafts.slice(1).map((each) => post(each));
    await turn();
    assert.equal(flushes.length, 1);
    one.succeed();
    const two = await flush(1);
    assert.deepEqual(two.tools, ['b', 'c', 'd']);
    two.succeed();
    await Promise.all(
      [first, ...rest].map((answer, index) => assertPosted(answer, drafts[index]!)),
    );
  });

  it('sends what waits before it answers what is decided', async () => {
    const { post, flush, flushes } = open();
    const first = post(draft('first')).then(() => flushes.length);
    const one = await flush(0);
    const second = post(draft('second')).then(() => flushes.length);
    one.succeed();
    assert.equal(await first, 2);
    flushes[1]!.succeed();
    assert.equal(await second, 2);
  });

  it('has what the first statement left decided by the second, and nothing else', async () => {
    const decided: string[] = [];
    const [a, b, c] = ['a', 'b', 'c'].map((tool) => draft(tool)) as [
      ChargeDraft,
      ChargeDraft,
      ChargeDraft,
    ];
    const { post } = open({
      execute: async (drafts) => drafts.map((each) => (each === b ? undefined : posted(each))),
      decide: async (drafts) => {
        decided.push(...drafts.map(({ tool }) => tool));
        return drafts.map(() => ({ kind: 'insufficient', balanceMicros: asMicros(7) }));
      },
    });
    const answers = [post(a), post(b), post(c)] as const;
    await Promise.all([assertPosted(answers[0], a), assertPosted(answers[2], c)]);
    assert.deepEqual(await answers[1], { kind: 'insufficient', balanceMicros: 7 });
    assert.deepEqual(decided, ['b']);
  });

  it('keeps what the first statement made when the second one fails', async () => {
    const [made, left] = [draft('made'), draft('left')];
    const { post } = open({
      execute: async (drafts) => drafts.map((each) => (each === left ? undefined : posted(each))),
      decide: async (_, onSent) => {
        onSent();
        throw postgresError('55P03');
      },
    });
    const answers = [post(made), post(left)] as const;
    await assertPosted(answers[0], made);
    await assertRefused(answers[1], 'service_unavailable');
  });

  it('has one statement in flight for a lane, and lanes that do not wait for each other', async () => {
    const { post, flush, flushes } = open({ laneCount: 2 });
    const answers = [0, 1, 0, 1].map((consumer) => post(draft('x', { consumer })));
    const [even, odd] = [await flush(0), await flush(1)];
    assert.equal(even.drafts.length, 2);
    answers.push(post(draft('later', { consumer: 0 })));
    await turn();
    assert.equal(flushes.length, 2);
    even.succeed();
    (await flush(2)).succeed();
    odd.succeed();
    await Promise.all(answers);
  });

  it('sends no more in one statement than it may', async () => {
    const { post, flush } = open({ batchMax: 2 });
    const answers = ['a', 'b', 'c', 'd', 'e'].map((tool) => post(draft(tool)));
    const sizes: number[] = [];
    for (let index = 0; index < 3; index += 1) {
      const { drafts, succeed } = await flush(index);
      sizes.push(drafts.length);
      succeed();
    }
    assert.deepEqual(sizes, [2, 2, 1]);
    await Promise.all(answers);
  });

  it('never sends an idempotency key twice in one statement', async () => {
    const { post, flush } = open();
    const answers = ['k', 'k', 'other', 'k'].map((key, index) => post(draft(`${index}`, { key })));
    const first = await flush(0);
    assert.deepEqual(first.tools, ['0', '2']);
    first.succeed();
    const second = await flush(1);
    assert.deepEqual(second.tools, ['1']);
    second.succeed();
    const third = await flush(2);
    assert.deepEqual(third.tools, ['3']);
    third.succeed();
    await Promise.all(answers);
  });

  it('refuses at once what the queue has no room for, and says when to come again', async () => {
    const { post, flush, flushes } = open({ queueMax: 2 });
    const inFlight = post(draft('in flight'));
    const one = await flush(0);
    const waiting = [post(draft('a')), post(draft('b'))];
    const error = await assertRefused(post(draft('too many')), 'service_unavailable');
    assert.ok((error.details.retryAfterSeconds ?? 0) >= 1);
    assert.equal(flushes.length, 1);
    one.succeed();
    (await flush(1)).succeed();
    await Promise.all([inFlight, ...waiting]);
    const after = post(draft('room again'));
    (await flush(2)).succeed();
    await after;
  });

  it('never sends a charge whose client has gone', async () => {
    const { post, flush, flushes } = open();
    const abandoned = post(draft('abandoned'), gone);
    const waiting = post(draft('waiting'));
    await assertRefused(abandoned, 'service_unavailable');
    const one = await flush(0);
    assert.deepEqual(one.tools, ['waiting']);
    one.succeed();
    await waiting;
    assert.equal(flushes.length, 1);
  });

  it('never sends a charge that waited past the deadline', async () => {
    const { post, flushes } = open({ deadlineMs: 0 });
    const error = await assertRefused(post(draft('expired')), 'service_unavailable');
    assert.equal(error.details.retryAfterSeconds, 1);
    assert.equal(flushes.length, 0);
  });

  it('cannot say that a charge did nothing while its key was in flight', async () => {
    const { post, flush, flushes } = open({ deadlineMs: 100 });
    const first = post(draft('first', { key: 'k' }));
    const one = await flush(0);
    const retry = post(draft('retry', { key: 'k' }));
    const stranger = post(draft('stranger', { key: 'other' }));
    await waitFor(101);
    one.succeed();
    await Promise.all([
      first,
      assertRefused(retry, 'idempotency_key_in_use'),
      assertRefused(stranger, 'service_unavailable'),
    ]);
    assert.equal(flushes.length, 1);
  });

  it('says that nothing happened when the statement was never sent', async () => {
    const { post, flush, failures } = open();
    const answers = [post(draft('a')), post(draft('b'))];
    const failure = new Error('connect ECONNREFUSED');
    (await flush(0)).fail(failure);
    for (const error of await assertAllRefused(answers, 'service_unavailable')) {
      assert.equal(error.cause, failure);
      assert.equal(error.details.retryAfterSeconds, 1);
    }
    assert.deepEqual(failures, [failure]);
  });

  it('says that the outcome is unknown when the line was lost after the statement was sent', async () => {
    const errors = [
      new Error('Connection terminated unexpectedly'),
      postgresError('08006'),
      postgresError('57P01'),
      postgresError('XX000'),
    ];
    for (const failure of errors) {
      const { post, flush, flushes } = open();
      const answers = [post(draft('a')), post(draft('b'))];
      const one = await flush(0);
      one.sent();
      one.fail(failure);
      await assertAllRefused(answers, 'outcome_unknown');
      assert.equal(flushes.length, 1);
    }
  });

  it('says that nothing happened when the database rolled back for want of a lock, time or memory', async () => {
    for (const code of ['40001', '40P01', '53200', '55P03', '57014']) {
      const { post, flush, flushes } = open();
      const answers = [post(draft('a')), post(draft('b'))];
      const one = await flush(0);
      one.sent();
      one.fail(postgresError(code));
      await assertAllRefused(answers, 'service_unavailable');
      assert.equal(flushes.length, 1, code);
    }
  });

  it('lets a charge that the database cannot take fail alone', async () => {
    const { post, flush, flushes } = open();
    const [good, poison, better] = [draft('good'), draft('poison'), draft('better')];
    const verdicts = Promise.all([
      assertPosted(post(good), good),
      assertRefused(post(poison), 'internal_error'),
      assertPosted(post(better), better),
    ]);
    const together = await flush(0);
    together.sent();
    together.fail(postgresError('22P05'));
    for (let index = 1; index <= 3; index += 1) {
      const alone = await flush(index);
      alone.sent();
      if (alone.tools[0] === 'poison') alone.fail(postgresError('22P05'));
      else alone.succeed();
    }
    await verdicts;
    assert.deepEqual(
      flushes.slice(1).flatMap(({ tools }) => tools),
      ['good', 'poison', 'better'],
    );
  });

  it('goes on after a failure', async () => {
    const { post, flush } = open();
    const refused = assertRefused(post(draft('failed')), 'service_unavailable');
    const one = await flush(0);
    const next = draft('next');
    const answer = post(next);
    one.fail(new Error('connect ECONNREFUSED'));
    await refused;
    (await flush(1)).succeed();
    await assertPosted(answer, next);
  });

  it('keeps each consumer’s order and gives each charge its own outcome, whatever arrives when', async () => {
    const anyArrival = fc.record({
      consumer: fc.nat(5),
      key: fc.option(fc.nat(2), { nil: undefined }),
      turns: fc.nat(2),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyArrival, { maxLength: 30 }),
        fc.integer({ min: 1, max: 3 }),
        async (arrivals, laneCount) => {
          const inFlight = new Set<number>();
          const decided: ChargeDraft[] = [];
          const { post } = open({
            laneCount,
            batchMax: 4,
            execute: async (drafts) => {
              const lane = Number.parseInt(drafts[0]!.consumerId.slice(-4), 16) % laneCount;
              assert.ok(!inFlight.has(lane), 'two statements in flight for a lane');
              inFlight.add(lane);
              await turn();
              const keys = drafts.flatMap(({ idempotencyHash }) => idempotencyHash ?? []);
              assert.equal(new Set(keys).size, keys.length, 'a key twice in a statement');
              decided.push(...drafts);
              inFlight.delete(lane);
              return drafts.map(posted);
            },
          });
          const sent: ChargeDraft[] = [];
          const answers: Promise<void>[] = [];
          for (const { consumer, key, turns } of arrivals) {
            for (let n = 0; n < turns; n += 1) await turn();
            const each = draft('x', { consumer, ...(key === undefined ? {} : { key: `${key}` }) });
            sent.push(each);
            answers.push(assertPosted(post(each), each));
          }
          await Promise.all(answers);
          // A key that is in flight makes its next charge wait, so only charges without one keep the order.
          for (const { consumerId } of sent) {
            assert.deepEqual(withoutKey(decided, consumerId), withoutKey(sent, consumerId));
          }
        },
      ),
    );
  });
});
