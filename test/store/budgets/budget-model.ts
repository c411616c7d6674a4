/**
 * What budgets should come to, in the plainest way: one consumer, its tree, its charges and holds. Time is counted in
 * waves; a window counts what happened in its first wave or later.
 */
import assert from 'node:assert/strict';
import type { LimitScope, WindowUnit } from '../../../src/domain/budget.ts';
import type { OverMode } from '../../../src/domain/hold.ts';

export interface ModelNode {
  readonly id: string;
  readonly number: number;
  /** From the root to this node. */
  readonly path: readonly ModelNode[];
  readonly maxPerCall: number | null;
  limit: number | null;
  used: number;
  window: { unit: WindowUnit; limit: number; used: number; since: number } | null;
  isClosed: boolean;
}

/** `node` is null for a key of the account. */
export interface ModelKey {
  readonly number: number;
  readonly node: ModelNode | null;
}

export interface ModelHold {
  readonly id: string;
  readonly key: ModelKey;
  readonly amount: number;
  readonly wave: number;
  held: number;
  captured: number;
  isOpen: boolean;
}

export interface ModelCharge {
  readonly id: string;
  readonly key: ModelKey;
  readonly amount: number;
  /** The last part of the amount, which was counted when the charge was made; the first, when its hold was placed. */
  readonly excess: number;
  readonly wave: number;
  readonly hold: ModelHold | null;
  refunded: number;
}

export type Verdict =
  | { readonly kind: 'fits' }
  | { readonly kind: 'insufficient' | 'key_closed' | 'hold_closed' }
  | { readonly kind: 'exceeds_hold'; readonly remaining: number }
  | {
      readonly kind: 'limit_reached';
      readonly node: string;
      readonly scope: LimitScope;
      readonly limit: number;
      readonly remaining: number;
    };

export interface Capture {
  readonly amount: number | null;
  readonly isFinal: boolean;
  readonly over: OverMode;
}

/** Charges that may still be refunded. */
const REMEMBERED = 2_000;

export class BudgetModel {
  readonly nodes: ModelNode[] = [];
  readonly keys: ModelKey[] = [{ number: 0, node: null }];
  readonly charges: ModelCharge[] = [];
  readonly holds: ModelHold[] = [];
  available: number;
  wave = 0;

  constructor(available: number) {
    this.available = available;
  }

  /** Whether a charge or a hold of this amount would be made now. */
  judge({ node }: ModelKey, amount: number, captured?: number): Verdict {
    for (const each of node?.path ?? []) {
      const refused = (scope: LimitScope, limit: number, used: number): Verdict => {
        const remaining = Math.max(limit - used, 0);
        return { kind: 'limit_reached', node: each.id, scope, limit, remaining };
      };
      const { limit, window, maxPerCall } = each;
      if (each.isClosed) return { kind: 'key_closed' };
      if (captured !== undefined && maxPerCall !== null) {
        if (captured + amount > maxPerCall) return refused('per_call', maxPerCall, captured);
      }
      if (limit !== null && amount > limit - each.used) return refused('total', limit, each.used);
      if (window && amount > window.limit - window.used) {
        return refused('window', window.limit, window.used);
      }
    }
    return amount > this.available ? { kind: 'insufficient' } : { kind: 'fits' };
  }

  judgeCapture(hold: ModelHold, { amount, over }: Capture): Verdict {
    if (!hold.isOpen) return { kind: 'hold_closed' };
    const excess = (amount ?? hold.held) - hold.held;
    if (excess <= 0 || over === 'cap') return { kind: 'fits' };
    if (over === 'reject') return { kind: 'exceeds_hold', remaining: hold.held };
    const verdict = this.judge(hold.key, excess, hold.captured + hold.held);
    return verdict.kind === 'key_closed'
      ? { kind: 'exceeds_hold', remaining: hold.held }
      : this.#ofCall(verdict, hold);
  }

  /** What one call may still take is counted from what was captured, not from what is held besides. */
  #ofCall(verdict: Verdict, { captured }: ModelHold): Verdict {
    if (verdict.kind !== 'limit_reached' || verdict.scope !== 'per_call') return verdict;
    return { ...verdict, remaining: Math.max(verdict.limit - captured, 0) };
  }

  charge(id: string, key: ModelKey, amount: number): void {
    this.charges.push({
      id,
      key,
      amount,
      excess: amount,
      wave: this.wave,
      hold: null,
      refunded: 0,
    });
    this.#count(key, amount, this.wave);
  }

  place(id: string, key: ModelKey, amount: number): void {
    const { wave } = this;
    this.holds.push({ id, key, amount, wave, held: amount, captured: 0, isOpen: true });
    this.#count(key, amount, wave);
  }

  capture(id: string, hold: ModelHold, { amount, isFinal, over }: Capture): void {
    const asked = amount ?? hold.held;
    const taken = Math.min(asked, hold.held);
    const excess = over === 'cap' ? 0 : asked - taken;
    const letGo = isFinal ? hold.held - taken : 0;
    const { key } = hold;
    this.charges.push({
      id,
      key,
      amount: taken + excess,
      excess,
      wave: this.wave,
      hold,
      refunded: 0,
    });
    hold.captured += taken + excess;
    hold.held -= taken + letGo;
    hold.isOpen = hold.held > 0;
    this.#count(key, excess, this.wave);
    this.#count(key, -letGo, hold.wave);
  }

  /** By its developer, or by the clock. */
  release(hold: ModelHold): void {
    this.#count(hold.key, -hold.held, hold.wave);
    hold.held = 0;
    hold.isOpen = false;
  }

  refund(charge: ModelCharge, amount: number): void {
    const ofExcess = Math.min(amount, Math.max(charge.excess - charge.refunded, 0));
    charge.refunded += amount;
    assert.ok(charge.refunded <= charge.amount);
    this.#count(charge.key, -ofExcess, charge.wave);
    this.#count(charge.key, ofExcess - amount, charge.hold?.wave ?? charge.wave);
  }

  /** All windows are over, and the next ones have counted nothing. */
  turnWindows(): void {
    for (const { window } of this.nodes) {
      if (window) Object.assign(window, { used: 0, since: this.wave + 1 });
    }
  }

  /** What nothing can happen to any more, and the oldest charges, which are then never refunded. */
  forget(): void {
    this.holds.splice(0, this.holds.length, ...this.holds.filter(({ isOpen }) => isOpen));
    if (this.charges.length > 2 * REMEMBERED)
      this.charges.splice(0, this.charges.length - REMEMBERED);
  }

  #count({ node }: ModelKey, micros: number, wave: number): void {
    this.available -= micros;
    for (const each of node?.path ?? []) {
      each.used += micros;
      if (each.window && wave >= each.window.since) each.window.used += micros;
    }
  }
}
