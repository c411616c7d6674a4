/** A hold, as stored in its row. In the database, a state is the index of its name in HOLD_STATUSES. */
import { HOLD_SECONDS_MAX, HOLD_STATUSES, type HoldStatus } from '../../domain/hold.ts';
import type { Micros } from '../../domain/money.ts';
import { sql, type Fragment } from '../database.ts';
import { idFloorOf } from '../database-ids.ts';

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

export interface HoldRow extends Omit<Hold, 'status'> {
  readonly state: number;
}

/**
 * A hold that is open at `time` has a greater id than this. A hold ends within 24 hours, and the extra hour allows for
 * clocks that differ.
 */
export function openHoldFloor(time: Fragment = sql.fragment`now()`) {
  return idFloorOf(sql.fragment`${time} - make_interval(secs => ${HOLD_SECONDS_MAX}, hours => 1)`);
}

/** Whether a hold, by the name or alias of its table, reserves money. An overdue one does until the sweep takes it. */
export function isOpen(holds: string): Fragment {
  return sql.fragment`(${sql.identifier([holds, 'state'])} = 0)`;
}

/** Whether its time is over, and the sweep has not taken it. */
export function isOverdue(holds: string): Fragment {
  return sql.fragment`(${isOpen(holds)} and ${sql.identifier([holds, 'expires_at'])} <= now())`;
}

/** The number of the status that its owners see, in HOLD_STATUSES and LEASE_STATUSES. */
export function stateNow(holds: string): Fragment {
  return sql.fragment`case when ${isOverdue(holds)} then 3 else ${sql.identifier([holds, 'state'])} end`;
}

export function holdOf<Row extends HoldRow>({ state, ...found }: Row): Hold & Omit<Row, 'state'> {
  const status = HOLD_STATUSES[state];
  if (status === undefined) throw new Error(`unknown state of a hold: ${state}`);
  return { ...found, status };
}
