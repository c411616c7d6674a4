/** The batcher against a ledger that answers when the test tells it to: order, limits, and accurate failures. */
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import * as fc from 'fast-check';
import { asMicros } from '../../src/domain/money.ts';
import type { ChargeDraft } from '../../src/store/charges/post-charges.ts';
import {
  openBatcher,
  newDraft,
  gone,
  posted,
  withoutKey,
  postgresError,
  assertFails,
  assertAllFail,
  assertPosted,
  waitFor,
} from '../support/scripted-batcher.ts';

describe('Batcher', () => {
  it('sends a charge at once when nothing is in flight', async () => {
    const { post, flush } = openBatcher();
    const only = newDraft('only');
    const answer = post(only);
    (await flush(0)).succeed();
    await assertPosted(answer, only);
  });

  it('sends together, in order of arrival, the charges that came while a statement was in flight', async () => {
    const { post, flush, flushes } = openBatcher();
    const drafts = ['a', 'b', 'c', 'd'].map((tool) => newDraft(tool));
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

  it('sends waiting charges before it answers decided ones', async () => {
    const { post, flush, flushes } = openBatcher();
    const first = post(newDraft('first')).then(() => flushes.length);
    const one = await flush(0);
    const second = post(newDraft('second')).then(() => flushes.length);
    one.succeed();
    assert.equal(await first, 2);
    flushes[1]!.succeed();
    assert.equal(await second, 2);
  });

  it('sends only the charges that the first statement left undecided in a second one', async () => {
    const decided: string[] = [];
    const [a, b, c] = ['a', 'b', 'c'].map((tool) => newDraft(tool)) as [
      ChargeDraft,
      ChargeDraft,
      ChargeDraft,
    ];
    const { post } = openBatcher({
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

  it('keeps the charges of the first statement when the second one fails', async () => {
    const [made, left] = [newDraft('made'), newDraft('left')];
    const { post } = openBatcher({
      execute: async (drafts) => drafts.map((each) => (each === left ? undefined : posted(each))),
      decide: async (_, onSent) => {
        onSent();
        throw postgresError('57014');
      },
    });
    const answers = [post(made), post(left)] as const;
    await assertPosted(answers[0], made);
    await assertFails(answers[1], 'not_made');
  });

  it('has one statement in flight per lane, and lanes that do not wait for each other', async () => {
    const { post, flush, flushes } = openBatcher({ laneCount: 2 });
    const answers = [0, 1, 0, 1].map((consumer) => post(newDraft('x', { consumer })));
    const [even, odd] = [await flush(0), await flush(1)];
    assert.equal(even.drafts.length, 2);
    answers.push(post(newDraft('later', { consumer: 0 })));
    await turn();
    assert.equal(flushes.length, 2);
    even.succeed();
    (await flush(2)).succeed();
    odd.succeed();
    await Promise.all(answers);
  });

  it('never sends more than the limit in one statement', async () => {
    const { post, flush } = openBatcher({ batchMax: 2 });
    const answers = ['a', 'b', 'c', 'd', 'e'].map((tool) => post(newDraft(tool)));
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
    const { post, flush } = openBatcher();
    const another = { isAbandoned: () => false };
    const answers = [
      post(newDraft('0', { key: 'k' })),
      post(newDraft('1', { key: 'k' })),
      post(newDraft('2', { key: 'other' })),
      post(newDraft('3', { key: 'of another consumer', consumer: 2 })),
      post(newDraft('4', { key: 'of another request' }), another),
      post(newDraft('5', { key: 'k' })),
    ];
    const first = await flush(0);
    assert.deepEqual(first.tools, ['0', '3', '4']);
    first.succeed();
    const second = await flush(1);
    // In the order in which the request has them.
    assert.deepEqual(second.tools, ['1', '2']);
    second.succeed();
    const third = await flush(2);
    assert.deepEqual(third.tools, ['5']);
    third.succeed();
    await Promise.all(answers);
  });

  it('refuses a charge at once when the queue is full', async () => {
    const { post, flush, flushes } = openBatcher({ queueMax: 2 });
    const inFlight = post(newDraft('in flight'));
    const one = await flush(0);
    const waiting = [post(newDraft('a')), post(newDraft('b'))];
    await assertFails(post(newDraft('too many')), 'not_made');
    assert.equal(flushes.length, 1);
    one.succeed();
    (await flush(1)).succeed();
    await Promise.all([inFlight, ...waiting]);
    const after = post(newDraft('room again'));
    (await flush(2)).succeed();
    await after;
  });

  it('never sends a charge whose client has disconnected', async () => {
    const { post, flush, flushes } = openBatcher();
    const abandoned = post(newDraft('abandoned'), gone);
    const waiting = post(newDraft('waiting'));
    await assertFails(abandoned, 'not_made');
    const one = await flush(0);
    assert.deepEqual(one.tools, ['waiting']);
    one.succeed();
    await waiting;
    assert.equal(flushes.length, 1);
  });

  it('never sends a charge that waited past the deadline', async () => {
    const { post, flushes } = openBatcher({ deadlineMs: 0 });
    await assertFails(post(newDraft('expired')), 'not_made');
    assert.equal(flushes.length, 0);
  });

  it('never says that a charge did nothing while its key was in flight', async () => {
    const { post, flush, flushes } = openBatcher({ deadlineMs: 100 });
    const first = post(newDraft('first', { key: 'k' }));
    const one = await flush(0);
    const retry = post(newDraft('retry', { key: 'k' }));
    const stranger = post(newDraft('stranger', { key: 'other' }));
    await waitFor(101);
    one.succeed();
    await Promise.all([
      first,
      assertFails(retry, 'key_in_flight'),
      assertFails(stranger, 'not_made'),
    ]);
    assert.equal(flushes.length, 1);
  });

  it('reports that nothing happened when the statement was never sent', async () => {
    const { post, flush, failures } = openBatcher();
    const answers = [post(newDraft('a')), post(newDraft('b'))];
    const failure = new Error('connect ECONNREFUSED');
    (await flush(0)).fail(failure);
    for (const error of await assertAllFail(answers, 'not_made')) {
      assert.equal(error.cause, failure);
    }
    assert.deepEqual(failures, [failure]);
  });

  it('reports an unknown outcome when the connection is lost after the statement was sent', async () => {
    const errors = [
      new Error('Connection terminated unexpectedly'),
      postgresError('08006'),
      postgresError('57P01'),
      postgresError('XX000'),
      // Codes of the system that look like those of Postgres.
      Object.assign(new Error('write EPIPE'), { code: 'EPIPE', syscall: 'write' }),
      Object.assign(new Error('This socket has been ended'), { code: 'EPIPE' }),
      Object.assign(new Error('write EPERM'), { code: 'EPERM', syscall: 'write' }),
    ];
    for (const failure of errors) {
      const { post, flush, flushes } = openBatcher();
      const answers = [post(newDraft('a')), post(newDraft('b'))];
      const one = await flush(0);
      one.sent();
      one.fail(failure);
      await assertAllFail(answers, 'outcome_unknown');
      assert.equal(flushes.length, 1);
    }
  });

  it('reports that nothing happened when the database rolled back for want of a lock, time or memory', async () => {
    for (const code of ['40001', '40P01', '53200', '57014']) {
      const { post, flush, flushes } = openBatcher();
      const answers = [post(newDraft('a')), post(newDraft('b'))];
      const one = await flush(0);
      one.sent();
      one.fail(postgresError(code));
      await assertAllFail(answers, 'not_made');
      assert.equal(flushes.length, 1, code);
    }
  });

  it('fails only the charge that the database rejects', async () => {
    const { post, flush, flushes } = openBatcher();
    const refused = postgresError('22P05');
    const [good, poison, better] = [newDraft('good'), newDraft('poison'), newDraft('better')];
    const verdicts = Promise.all([
      assertPosted(post(good), good),
      assert.rejects(post(poison), refused),
      assertPosted(post(better), better),
    ]);
    const together = await flush(0);
    together.sent();
    together.fail(refused);
    for (let index = 1; index <= 3; index += 1) {
      const alone = await flush(index);
      alone.sent();
      if (alone.tools[0] === 'poison') alone.fail(refused);
      else alone.succeed();
    }
    await verdicts;
    assert.deepEqual(
      flushes.slice(1).flatMap(({ tools }) => tools),
      ['good', 'poison', 'better'],
    );
  });

  it('continues after a failure', async () => {
    const { post, flush } = openBatcher();
    const refused = assertFails(post(newDraft('failed')), 'not_made');
    const one = await flush(0);
    const next = newDraft('next');
    const answer = post(next);
    one.fail(new Error('connect ECONNREFUSED'));
    await refused;
    (await flush(1)).succeed();
    await assertPosted(answer, next);
  });

  it('keeps each consumer’s order and gives each charge its own outcome, for any arrival order', async () => {
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
          const { post } = openBatcher({
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
            const each = newDraft('x', {
              consumer,
              ...(key === undefined ? {} : { key: `${key}` }),
            });
            sent.push(each);
            answers.push(assertPosted(post(each), each));
          }
          await Promise.all(answers);
          // A charge whose key is in flight waits, so only charges without a key keep the order.
          for (const { consumerId } of sent) {
            assert.deepEqual(withoutKey(decided, consumerId), withoutKey(sent, consumerId));
          }
        },
      ),
    );
  });
});
