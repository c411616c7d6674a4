/** Developers share a lane. Charges that need a decision or a lock leave it, so that they hold up nobody else. */
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import type { ChargeDraft } from '../../src/store/charges/post-charges.ts';
import {
  openBatcher,
  newDraft,
  posted,
  postgresError,
  assertFails,
  assertPosted,
  waitFor,
} from '../support/scripted-batcher.ts';

const refuse = async (_: unknown, onSent: () => void): Promise<never> => {
  onSent();
  await turn();
  throw postgresError('55P03');
};

const many = (developer: number, count: number) =>
  Array.from({ length: count }, (_, n) => newDraft(`${developer}.${n}`, { developer }));

describe('the lanes of Batcher', () => {
  it('serves developers in turn, even when one of them has a long queue', async () => {
    const { post, flush } = openBatcher({ batchMax: 4 });
    const first = post(newDraft('first'));
    const inFlight = await flush(0);
    const flood = Array.from({ length: 9 }, (_, n) => post(newDraft(`flood ${n}`)));
    const other = post(newDraft('other', { developer: 2, consumer: 1 }));
    const third = post(newDraft('third', { developer: 3, consumer: 2 }));
    inFlight.succeed();
    const next = await flush(1);
    assert.deepEqual(next.tools, ['flood 0', 'other', 'third', 'flood 1']);
    next.succeed();
    await Promise.all([first, other, third]);
    for (const index of [2, 3]) (await flush(index)).succeed();
    await Promise.all(flood);
  });

  it('reports how long the oldest charge of a flush waited, even when a newer one is served first', async () => {
    const waits: number[] = [];
    const { post, flush } = openBatcher({
      batchMax: 3,
      onFlush: ({ waitedMs }) => waits.push(waitedMs),
    });
    const charges = [post(newDraft('first'))];
    const inFlight = await flush(0);
    charges.push(...many(1, 3).map((each) => post(each)));
    const oldest = performance.now();
    await waitFor(50);
    const newest = performance.now();
    charges.push(...many(2, 2).map((each) => post(each)));
    inFlight.succeed();
    (await flush(1)).succeed();
    const last = await flush(2);
    assert.deepEqual(last.tools, ['2.1', '1.2']);
    last.succeed();
    await Promise.all(charges);
    const [, , waitedMs = 0] = waits;
    assert.ok(waitedMs > newest - oldest, `${waitedMs} ms`);
  });

  describe('with two charges for each waiting developer', () => {
    const LIMITS = { batchMax: 5, shareMax: 2 };

    it('keeps flushes small while a developer with few charges charges', async () => {
      const { post, flush } = openBatcher(LIMITS);
      const charges = many(1, 12).map((each) => post(each));
      const first = await flush(0);
      assert.equal(first.tools.length, 5);
      const other = post(newDraft('other', { developer: 2 }));
      first.succeed();
      const second = await flush(1);
      assert.deepEqual(second.tools, ['1.5', 'other', '1.6', '1.7']);
      second.succeed();
      const third = await flush(2);
      assert.deepEqual(third.tools, ['1.8', '1.9']);
      third.succeed();
      (await flush(3)).succeed();
      await Promise.all([...charges, other]);
    });

    it('fills flushes of one developer alone', async () => {
      const { post, flush } = openBatcher(LIMITS);
      const charges = many(1, 10).map((each) => post(each));
      for (const index of [0, 1]) {
        const full = await flush(index);
        assert.equal(full.tools.length, 5);
        full.succeed();
      }
      await Promise.all(charges);
    });
  });

  it('refuses a developer with a full share of the queue, and no other', async () => {
    const { post, flush } = openBatcher({ queueMaxByDeveloper: 2 });
    const answers = [post(newDraft('in flight'))];
    const inFlight = await flush(0);
    answers.push(post(newDraft('a')), post(newDraft('b')));
    await assertFails(post(newDraft('too many')), 'not_made');
    answers.push(post(newDraft('other', { developer: 2 })));
    inFlight.succeed();
    (await flush(1)).succeed();
    await Promise.all(answers);
  });

  it('keeps charging others while one charge is decided alone, and keeps its consumer’s order', async () => {
    const decided: string[] = [];
    const waiting = Promise.withResolvers<void>();
    const sent: string[][] = [];
    const { post } = openBatcher({
      execute: async (drafts) => {
        sent.push(drafts.map(({ tool }) => tool));
        return drafts.map((each) => (each.tool === 'left' ? undefined : posted(each)));
      },
      decide: async (drafts) => {
        await waiting.promise;
        decided.push(...drafts.map(({ tool }) => tool));
        return drafts.map(posted);
      },
    });
    const left = post(newDraft('left'));
    while (sent.length < 1) await turn();
    const after = post(newDraft('after'));
    const other = newDraft('other', { consumer: 1 });
    await assertPosted(post(other), other);
    assert.deepEqual(decided, []);
    waiting.resolve();
    await Promise.all([left, after]);
    assert.deepEqual(decided, ['left', 'after']);
    const again = newDraft('again');
    await assertPosted(post(again), again);
    assert.deepEqual(sent.flat(), ['left', 'other', 'again']);
  });

  it('keeps the order of a consumer and its holds while one of these is decided alone', async () => {
    const decided: string[] = [];
    const waiting = Promise.withResolvers<void>();
    const sent: string[] = [];
    const { post } = openBatcher({
      payerOf: ({ tool, consumerId }) => (tool === 'left' ? `hold-${consumerId}` : consumerId),
      execute: async (drafts) => {
        sent.push(...drafts.map(({ tool }) => tool));
        return drafts.map((each) => (each.tool === 'left' ? undefined : posted(each)));
      },
      decide: async (drafts) => {
        await waiting.promise;
        decided.push(...drafts.map(({ tool }) => tool));
        return drafts.map(posted);
      },
    });
    const left = post(newDraft('left'));
    while (sent.length < 1) await turn();
    const after = post(newDraft('after'));
    const other = newDraft('other', { consumer: 1 });
    await assertPosted(post(other), other);
    waiting.resolve();
    await Promise.all([left, after]);
    assert.deepEqual(
      [sent, decided],
      [
        ['left', 'other'],
        ['left', 'after'],
      ],
    );
  });

  it('charges the neighbors of a locked consumer at once, and that consumer as soon as possible', async () => {
    const lockedId = newDraft('').consumerId;
    let isLocked = true;
    const attempt = async (drafts: readonly ChargeDraft[], onSent: () => void) => {
      onSent();
      await turn();
      if (isLocked && drafts.some(({ consumerId }) => consumerId === lockedId)) {
        throw postgresError('55P03');
      }
      return drafts.map(posted);
    };
    const { post, failures } = openBatcher({
      execute: attempt,
      decide: attempt,
      findLocked: async () => new Set(isLocked ? [lockedId] : []),
    });
    const held = newDraft('held');
    const answer = post(held);
    const free = [1, 2, 3].map((consumer) => newDraft('free', { consumer }));
    await Promise.all(free.map((each) => assertPosted(post(each), each)));
    isLocked = false;
    await assertPosted(answer, held);
    assert.deepEqual(failures, []);
  });

  it('keeps the order of a consumer that stays locked after its charges wait for it', async () => {
    let refusals = 3;
    const decided: string[] = [];
    const attempt = async (drafts: readonly ChargeDraft[], onSent: () => void) => {
      if (refusals > 0) {
        refusals -= 1;
        return refuse(drafts, onSent);
      }
      decided.push(...drafts.map(({ tool }) => tool));
      return drafts.map(posted);
    };
    const { post } = openBatcher({
      execute: attempt,
      decide: attempt,
      findLocked: async () => new Set([newDraft('').consumerId]),
      batchMax: 2,
    });
    const drafts = ['a', 'b', 'c', 'd', 'e'].map((tool) => newDraft(tool));
    await Promise.all(drafts.map((each) => assertPosted(post(each), each)));
    assert.deepEqual(decided, ['a', 'b', 'c', 'd', 'e']);
  });

  it('finds a charge that the database rejects, wherever it is, in few flushes', async () => {
    for (const place of [0, 1, 60, 149, 199]) {
      const sizes: number[] = [];
      const { post } = openBatcher({
        batchMax: 200,
        shareMax: 200,
        queueMax: 2_000,
        queueMaxByDeveloper: 2_000,
        execute: async (drafts, onSent) => {
          onSent();
          await turn();
          sizes.push(drafts.length);
          if (drafts.some(({ tool }) => tool === 'faulty')) throw postgresError('22003');
          return drafts.map(posted);
        },
      });
      const drafts = many(1, 600).with(place, newDraft('faulty'));
      const answers = drafts.map((each) =>
        each.tool === 'faulty' ? assert.rejects(post(each)) : assertPosted(post(each), each),
      );
      // They arrive after the batch was sent.
      while (sizes.length < 1) await turn();
      const others = [2, 3, 4, 5].flatMap((developer) => many(developer, 20));
      await Promise.all([...answers, ...others.map((each) => assertPosted(post(each), each))]);
      assert.ok(sizes.length < 40, `at ${place}: ${sizes.join(' ')}`);
    }
  });

  it('refuses a developer with a full share of the lane for exceptions, and no other', async () => {
    const waiting = Promise.withResolvers<void>();
    const sent: string[] = [];
    const { post } = openBatcher({
      queueMaxByDeveloper: 2,
      execute: async (drafts) => {
        sent.push(...drafts.map(({ tool }) => tool));
        return drafts.map(() => undefined);
      },
      decide: async (drafts) => {
        await waiting.promise;
        return drafts.map(posted);
      },
    });
    const isMoved = async (tool: string) => {
      while (sent.at(-1) !== tool) await turn();
      await turn();
    };
    const answers: Promise<unknown>[] = [];
    // One is being decided, and two wait behind it.
    for (const [consumer, draft] of many(1, 3).entries()) {
      answers.push(post({ ...draft, consumerId: newDraft('', { consumer }).consumerId }));
      await isMoved(draft.tool);
    }
    const refused = assertFails(post(newDraft('too many', { consumer: 3 })), 'not_made');
    await isMoved('too many');
    answers.push(post(newDraft('other', { developer: 2, consumer: 4 })));
    await isMoved('other');
    waiting.resolve();
    await Promise.all([refused, ...answers]);
  });

  it('does not make a charge whose consumer stays locked past the deadline', async () => {
    const only = newDraft('held');
    const { post } = openBatcher({
      execute: refuse,
      decide: refuse,
      findLocked: async () => new Set([only.consumerId]),
      deadlineMs: 50,
    });
    await assertFails(post(only), 'not_made');
  });
});
