/** The checker of histories agrees with trying every order, and the model gives the answers of the specification. */
import assert from 'node:assert/strict';
import { array, assert as check, integer, nat, property, record, tuple } from 'fast-check';
import { SEED } from '../../support/random.ts';
import { apply, newLedger, type ModelState } from './ledger-model.ts';
import { checkHistory } from './linearizable.ts';
import type { Effect, Operation } from './operation.ts';

const at = (calledMs: number, answeredMs: number, effect: Effect): Operation => ({
  effect,
  calledMs,
  answeredMs,
});
const charge = (id: string, micros: number, balance: number): Effect => ({
  kind: 'charge',
  id,
  micros,
  balance,
});
const balance = (micros: number): Effect => ({ kind: 'balance', balance: micros });

const isLinearizable = (operations: readonly Operation[]) =>
  checkHistory(operations, newLedger(10), apply).isLinearizable;

describe('the checker of histories', () => {
  it('accepts charges that overlap, in the order of their balances', () => {
    assert.ok(
      isLinearizable([
        at(0, 9, charge('a', 3, 3)),
        at(1, 8, charge('b', 4, 6)),
        at(2, 7, balance(6)),
      ]),
    );
  });

  it('rejects a balance that misses a charge answered before', () => {
    const operations = [at(0, 1, charge('a', 3, 7)), at(2, 3, balance(10))];
    const verdict = checkHistory(operations, newLedger(10), apply);
    assert.deepEqual(verdict, { isLinearizable: false, ordered: 1, stuckAt: [operations[1]] });
  });

  it('rejects two charges with one balance, a charge below zero, and one charge twice', () => {
    assert.ok(!isLinearizable([at(0, 9, charge('a', 3, 7)), at(0, 9, charge('b', 3, 7))]));
    assert.ok(!isLinearizable([at(0, 9, charge('a', 11, -1))]));
    assert.ok(!isLinearizable([at(0, 9, charge('a', 1, 9)), at(0, 9, charge('a', 1, 8))]));
  });

  it('follows a hold through captures and its release', () => {
    const hold: Effect = { kind: 'hold', id: 'h', micros: 5, balance: 5 };
    const part = { kind: 'capture', holdId: 'h', id: 'a', micros: 2, isFinal: false, balance: 5 };
    const release: Effect = { kind: 'release', holdId: 'h' };
    const closed: Effect = { kind: 'closed', holdId: 'h', by: 'capture' };
    const steps = [hold, part as Effect, release, release, closed, balance(8)];
    assert.ok(isLinearizable(steps.map((effect, n) => at(2 * n, 2 * n + 1, effect))));
    assert.ok(!isLinearizable([hold, closed].map((effect, n) => at(2 * n, 2 * n + 1, effect))));
  });

  it(`agrees with trying every order, for small histories (SEED=${SEED})`, () => {
    const counts = { yes: 0, no: 0 };
    const some = record({ micros: integer({ min: 1, max: 6 }), kind: nat(2) });
    const times = tuple(integer({ min: 0, max: 8 }), integer({ min: 0, max: 6 }));
    const small = array(tuple(some, times, integer({ min: -1, max: 1 })), {
      minLength: 1,
      maxLength: 6,
    });
    check(
      property(small, (asked) => {
        // Answers as some order gives them, now and then wrong by a little.
        let available = 10;
        const operations = asked.map(([{ micros, kind }, [from, took], error], n) => {
          const off = n % 2 === 0 ? 0 : error;
          if (kind === 0) {
            available += micros;
            return at(from, from + took, { kind: 'credit', id: `t${n}`, micros });
          }
          if (kind === 1) return at(from, from + took, balance(available + off));
          const isFitting = micros <= available;
          if (isFitting) available -= micros;
          return at(
            from,
            from + took,
            isFitting
              ? charge(`c${n}`, micros, available + off)
              : { kind: 'refusal', micros, balance: available + off },
          );
        });
        const expected = hasOrder(operations, newLedger(10));
        assert.equal(isLinearizable(operations), expected);
        counts[expected ? 'yes' : 'no'] += 1;
      }),
      { numRuns: 2_000, seed: SEED },
    );
    assert.ok(counts.yes > 50 && counts.no > 50, JSON.stringify(counts));
  });
});

/** By definition: tries everything that no other operation was answered before. */
function hasOrder(left: readonly Operation[], state: ModelState): boolean {
  if (left.length === 0) return true;
  return left.some((operation) => {
    if (left.some(({ answeredMs }) => answeredMs < operation.calledMs)) return false;
    const next = apply(state, operation.effect);
    return (
      next !== undefined &&
      hasOrder(
        left.filter((other) => other !== operation),
        next,
      )
    );
  });
}
