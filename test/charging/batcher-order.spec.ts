/**
 * The order of a consumer's charges and of the entries of its holds, while statements leave, lock out and
 * reject some.
 */
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import * as fc from 'fast-check';
import type { ChargeDraft } from '../../src/store/charges/post-charges.ts';
import { newDraft, openBatcher, posted, postgresError } from '../support/scripted-batcher.ts';

const LOCK_NOT_AVAILABLE = '55P03';
const OUT_OF_RANGE = '22003';

/** A draft whose tool ends so is about a hold of the consumer. */
const OF_HOLD = 'h';
const payerOf = ({ tool, consumerId }: ChargeDraft) =>
  tool.endsWith(OF_HOLD) ? `hold-${consumerId}` : consumerId;

const arrivals = fc.array(
  fc.record({ consumer: fc.nat(2), isOfHold: fc.boolean(), turns: fc.nat(2) }),
  { minLength: 4, maxLength: 24 },
);
/** What happens next, from 0 to 1, over and over. */
const chances = fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), {
  minLength: 20,
  maxLength: 60,
});

describe('the order of a consumer in the batcher', () => {
  it('is that of arrival while statements meet locks, leave charges and reject batches', async () => {
    await fc.assert(
      fc.asyncProperty(
        arrivals,
        chances,
        fc.integer({ min: 1, max: 2 }),
        fc.integer({ min: 1, max: 4 }),
        async (all, chance, laneCount, batchMax) => {
          let draws = 0;
          // Ends, although the same chances come again: from then on nothing fails.
          const draw = () => (draws < 400 ? (chance[draws++ % chance.length] ?? 0.9) : 0.9);
          let locked = new Set<string>();
          const decided: ChargeDraft[] = [];
          const statement =
            (leaves: boolean) => async (drafts: readonly ChargeDraft[], onSent: () => void) => {
              onSent();
              for (let turns = Math.floor(draw() * 3); turns > 0; turns -= 1) await turn();
              const ids = [...new Set(drafts.map(({ consumerId }) => consumerId))];
              const happens = draw();
              if (happens < 0.25) {
                locked = new Set(ids.filter(() => draw() < 0.6));
                throw postgresError(LOCK_NOT_AVAILABLE);
              }
              if (happens < 0.35 && drafts.length > 1) throw postgresError(OUT_OF_RANGE);
              const left = new Set(ids.filter(() => leaves && draw() < 0.3));
              return drafts.map((draft) => {
                if (left.has(draft.consumerId)) return undefined;
                decided.push(draft);
                return posted(draft);
              });
            };
          const { post } = openBatcher({
            payerOf,
            execute: statement(true),
            decide: async (drafts, onSent) =>
              (await statement(false)(drafts, onSent)).filter((outcome) => outcome !== undefined),
            findLocked: async (drafts) =>
              new Set(drafts.filter(({ consumerId }) => locked.has(consumerId)).map(payerOf)),
            laneCount,
            batchMax,
          });
          const sent: ChargeDraft[] = [];
          const answers: Promise<unknown>[] = [];
          for (const [index, { consumer, isOfHold, turns }] of all.entries()) {
            for (let n = 0; n < turns; n += 1) await turn();
            const developer = 1 + (consumer % 2);
            const draft = newDraft(`${index}${isOfHold ? OF_HOLD : ''}`, { consumer, developer });
            sent.push(draft);
            answers.push(post(draft));
          }
          await Promise.all(answers);
          for (const consumerId of new Set(sent.map((draft) => draft.consumerId))) {
            const ofConsumer = (drafts: readonly ChargeDraft[]) =>
              drafts.filter((draft) => draft.consumerId === consumerId).map(({ tool }) => tool);
            assert.deepEqual(ofConsumer(decided), ofConsumer(sent));
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
