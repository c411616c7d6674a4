/** A consumer's ledger as the specification describes it, one operation after the other. */
import type { Effect } from './operation.ts';

export interface ModelState {
  readonly available: number;
  readonly charges: ReadonlyMap<string, { readonly micros: number; readonly refunded: number }>;
  readonly holds: ReadonlyMap<string, { readonly left: number; readonly state: HoldState }>;
}

type HoldState = 'open' | 'captured' | 'released';

export function newLedger(available: number): ModelState {
  return { available, charges: new Map(), holds: new Map() };
}

/** The ledger after the operation; undefined when the operation could not have been answered like this. */
export function apply(state: ModelState, effect: Effect): ModelState | undefined {
  const { available, charges, holds } = state;
  switch (effect.kind) {
    case 'charge': {
      const { id, micros, balance } = effect;
      if (available - micros !== balance || balance < 0 || charges.has(id)) return undefined;
      return { ...state, available: balance, charges: withEntry(charges, id, newCharge(micros)) };
    }
    case 'hold': {
      const { id, micros, balance } = effect;
      if (available - micros !== balance || balance < 0 || holds.has(id)) return undefined;
      const hold = { left: micros, state: 'open' } as const;
      return { ...state, available: balance, holds: withEntry(holds, id, hold) };
    }
    case 'refusal':
      return available === effect.balance && available < effect.micros ? state : undefined;
    case 'credit':
      return { ...state, available: available + effect.micros };
    case 'balance':
      return available === effect.balance ? state : undefined;
    case 'refund': {
      const { chargeId, micros } = effect;
      const charge = charges.get(chargeId);
      const refunded = (charge?.refunded ?? 0) + micros;
      if (!charge || refunded !== effect.refunded || refunded > charge.micros) return undefined;
      const after = withEntry(charges, chargeId, { ...charge, refunded });
      return { ...state, available: available + micros, charges: after };
    }
    case 'refund_refused': {
      const charge = charges.get(effect.chargeId);
      if (!charge) return undefined;
      const refundable = charge.micros - charge.refunded;
      return refundable === effect.refundable && effect.micros > refundable ? state : undefined;
    }
    case 'capture': {
      const { holdId, id, micros, isFinal, balance } = effect;
      const hold = holds.get(holdId);
      if (hold?.state !== 'open' || micros > hold.left || charges.has(id)) return undefined;
      const left = isFinal ? 0 : hold.left - micros;
      if (available + (isFinal ? hold.left - micros : 0) !== balance) return undefined;
      return {
        available: balance,
        charges: withEntry(charges, id, newCharge(micros)),
        holds: withEntry(holds, holdId, { left, state: left === 0 ? 'captured' : 'open' }),
      };
    }
    case 'release': {
      const hold = holds.get(effect.holdId);
      if (hold?.state === 'released') return state;
      if (hold?.state !== 'open') return undefined;
      const after = withEntry(holds, effect.holdId, { left: 0, state: 'released' as const });
      return { ...state, available: available + hold.left, holds: after };
    }
    case 'closed': {
      const hold = holds.get(effect.holdId)?.state;
      const isSo = effect.by === 'release' ? hold === 'captured' : hold && hold !== 'open';
      return isSo ? state : undefined;
    }
  }
}

const newCharge = (micros: number) => ({ micros, refunded: 0 });

function withEntry<V>(map: ReadonlyMap<string, V>, key: string, value: V): ReadonlyMap<string, V> {
  return new Map(map).set(key, value);
}
