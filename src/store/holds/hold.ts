/** A hold, as stored in its row. */
import { HOLD_STATUSES, type HoldStatus } from '../../domain/hold.ts';
import { asMicros, type Micros } from '../../domain/money.ts';

/** Ids are UUIDs. */
export interface Hold {
  readonly id: string;
  readonly consumerId: string;
  readonly tool: string;
  readonly amountMicros: Micros;
  readonly capturedMicros: Micros;
  /** The amount that can still be captured; 0 once the hold is closed. */
  readonly remainingMicros: Micros;
  /** `expired` from `expiresAt` on, even before the sweep has released the rest. */
  readonly status: HoldStatus;
  readonly placedAt: string;
  readonly expiresAt: string;
}

export interface HoldRow {
  readonly id: string;
  readonly consumerId: string;
  readonly tool: string;
  readonly amountMicros: number;
  readonly capturedMicros: number;
  readonly remainingMicros: number;
  readonly state: number;
  readonly placedAt: string;
  readonly expiresAt: string;
}

export function holdOf<Row extends HoldRow>({ state, ...found }: Row): Hold & Omit<Row, 'state'> {
  const status = HOLD_STATUSES[state];
  if (status === undefined) throw new Error(`unknown state of a hold: ${state}`);
  return {
    ...found,
    status,
    amountMicros: asMicros(found.amountMicros),
    capturedMicros: asMicros(found.capturedMicros),
    remainingMicros: asMicros(found.remainingMicros),
  };
}
