/** Holds, and batches of charges and holds. */
import type { HoldsReply, ListedHold } from './api.js';
import type { CallOptions, Charge, ChargeRequest, List, PageSize, Units } from './index.js';
import type { Amount } from './money.js';

/** Reserves money for a call, until it is captured, released or expires. */
export interface HoldRequest extends Pick<
  ChargeRequest,
  'apiKey' | 'tool' | 'metadata' | 'idempotencyKey'
> {
  /** Dollars: the most that the call may cost. Default: the price with which the tool is registered. */
  amount?: Amount | undefined;
  /** In place of an amount: the most that the call may use, by the tool's rate card. */
  units?: Units | undefined;
  /** Seconds, 1 to 86,400. Default 600. */
  expiresIn?: number | undefined;
}

export interface Hold {
  /** `hld_...` */
  id: string;
  tool: string;
  amount: number;
  /** Dollars captured so far. */
  captured: number;
  /** Dollars still held. */
  remaining: number;
  status: 'open' | 'captured' | 'released' | 'expired';
  expiresAt: string;
  createdAt: string;
  consumerId: string;
  developerId: string;
}

export interface HoldsFilter extends PageSize {
  status?: Hold['status'] | undefined;
}

export interface CaptureRequest extends Pick<ChargeRequest, 'metadata' | 'idempotencyKey'> {
  /** The hold's `id`. */
  holdId: string;
  /** Dollars. Default: all that is still held. */
  amount?: Amount | undefined;
  /**
   * In place of an amount: what the call used, by the rate card that priced the hold. If the hold was placed by an
   * amount, by the card that its tool has now.
   */
  units?: Units | undefined;
  /** Whether to release what is not captured. Default true. */
  final?: boolean | undefined;
  /**
   * What to do with more than is held: refuse (`reject`, the default), capture what is held (`cap`), or take the rest
   * from the balance (`overflow`).
   */
  over?: 'reject' | 'cap' | 'overflow' | undefined;
}

/** A capture is a charge. */
export interface Capture extends Omit<Charge, 'paid'> {
  holdId: string;
  hold: Hold;
}

/** What a batch does: charges, and holds placed, captured and released. */
export type BatchRequest =
  | ({ op?: 'charge' | undefined } & Omit<ChargeRequest, 'onUnavailable' | 'ask'>)
  | ({ op: 'hold' } & HoldRequest)
  | ({ op: 'capture' } & CaptureRequest)
  | { op: 'release'; holdId: string; idempotencyKey?: string | undefined };

/**
 * Holds, for calls whose cost is known only afterwards or that may fail. Each write has an idempotency key, like a
 * charge. Throws `hold_not_found`, `hold_closed` with `objectStatus`, `exceeds_hold` with `remaining`.
 */
export interface Holds {
  /** Refused like a charge. */
  place(
    request: HoldRequest,
    options?: CallOptions,
  ): Promise<Hold & { balance: number; replayed: boolean }>;
  capture(request: CaptureRequest, options?: CallOptions): Promise<Capture>;
  /** Releases what is left. */
  release(
    request: { holdId: string; idempotencyKey?: string | undefined },
    options?: CallOptions,
  ): Promise<Hold>;
  /** Sets the expiry to `expiresIn` seconds from now. */
  extend(
    request: { holdId: string; expiresIn: number; idempotencyKey?: string | undefined },
    options?: CallOptions,
  ): Promise<Hold>;
  /** Lists the holds that you placed, newest first, with their metadata. */
  list(filter?: HoldsFilter, options?: CallOptions): List<ListedHold, HoldsReply>;
  get(id: string, options?: CallOptions): Promise<ListedHold>;
}
