/** Leases: money that this process spends by itself, call by call, and settles in batches. */
import type { LeaseReply, LeasesReply, PlacedLeaseReply, SettlementReply } from './api.js';
import type { CallOptions, ChargeRequest, List, PageSize } from './index.js';
import type { Amount } from './money.js';

/** A tool by its name, at its registered price, or with the maximum price of a call. */
export type LeasedTool = string | { name: string; price?: Amount | undefined };

export interface LeaseOptions {
  /** A spend key whose budget, and each one above it, has `allowLeases`. */
  apiKey: string | undefined;
  tools: readonly LeasedTool[];
  /** Dollars of one lease. The next one is taken when half is used, so up to two are reserved. */
  amount: Amount;
  /** Seconds that a lease lasts unless it is renewed, from 5 to 86,400. Default 300. */
  expiresIn?: number | undefined;
  /**
   * Called with the results of each batch. `close()` waits for a promise that it returns. If it fails, the
   * process gets a warning (`process.on('warning')`), and the lease continues.
   */
  onSettled?: ((results: SettledCall[]) => unknown) | undefined;
  /**
   * Node only: the path of a file in which each call is stored before it is answered. After a crash, the next
   * lease with this path settles what the file has. Calls of a lease that the service does not know stay in
   * the file, and `onSettled` gets them as `lease_not_found`. Each lease needs a file of its own:
   * farebox.lease() throws a TypeError while another lease uses the file, in this process or another one of
   * this machine. It cannot see the processes of other containers: these must have ended.
   */
  journal?: string | undefined;
}

/** A call that was decided here. It becomes a charge when it is settled. */
export interface LeasedCharge {
  paid: true;
  provisional: true;
  leaseId: string;
  /** The number of the call within the lease. */
  sequence: number;
}

export type SettledCall =
  | {
      paid: true;
      leaseId: string;
      sequence: number;
      /** `chg_...` */
      id: string;
      receipt: string;
      tool: string;
      amount: number;
      createdAt: string;
      code?: undefined;
      message?: undefined;
    }
  /** It ran and will not be paid for: the lease had ended, or somebody else settled it. */
  | {
      paid: false;
      leaseId: string;
      sequence: number;
      code: string;
      message: string;
      id?: undefined;
      receipt?: undefined;
      tool?: undefined;
      amount?: undefined;
      createdAt?: undefined;
    };

export interface LeaseCall {
  tool: string;
  /** Dollars: at most the price of the tool, which is the default. */
  amount?: Amount | undefined;
  metadata?: ChargeRequest['metadata'];
}

export interface SettleOptions {
  /** How long to wait for settlements, in milliseconds. Default 8000. */
  timeoutMs?: number | undefined;
}

export interface Settlement {
  unsettled: UnsettledCall[];
}

/** Farebox did not respond to its settlement, so it may be settled or not. Settling it again charges it once. */
export interface UnsettledCall {
  leaseId: string;
  sequence: number;
  tool: string;
  /** Dollars. */
  amount: number;
  metadata?: ChargeRequest['metadata'];
}

/** `Answer` is a promise when there is a journal, and may be one when `journal` may be a path. */
export interface Lease<Answer = LeasedCharge> {
  /**
   * Decides a call, without a request. Run the tool when it answers. Throws FareboxError: `unknown_tool`,
   * `invalid_amount`, `invalid_request` for metadata that the service refuses, `exceeds_lease` for a call that
   * costs more than the `amount` of a lease, `lease_used_up` while there is no next lease yet, or the reason
   * why it was refused or has too little, such as `insufficient_balance` or `spend_limit_reached`.
   */
  charge(call: LeaseCall): Answer;
  /**
   * Settles now the calls decided so far, which otherwise happens after one second or 1,000 calls. Returns within
   * `timeoutMs`, even while Farebox is unreachable, with the calls that are still unsettled (normally none). The
   * lease keeps settling them.
   */
  settle(options?: SettleOptions): Promise<Settlement>;
  /**
   * Settles everything and releases the rest. Call it before your process ends. It returns after at most
   * `timeoutMs`, even while Farebox is unreachable, with the calls that are not settled (normally none). The
   * next lease with the same journal settles them, as does `farebox.leases.settle()` until the lease expires;
   * afterwards you lose them.
   */
  close(options?: SettleOptions): Promise<Settlement>;
  /** The id of the current lease. */
  readonly leaseId: string;
  /** Dollars left for calls that are decided without a request. */
  readonly remaining: number;
}

/** The requests that `farebox.lease()` makes, one by one. */
export interface Leases {
  take(
    request: {
      apiKey: string | undefined;
      tools: readonly LeasedTool[];
      amount: Amount;
      expiresIn?: number | undefined;
      idempotencyKey?: string | undefined;
    },
    options?: CallOptions,
  ): Promise<PlacedLeaseReply>;
  settle(
    request: {
      leaseId: string;
      fence?: number | undefined;
      entries: readonly {
        sequence: number;
        tool: string;
        amount: Amount;
        metadata?: ChargeRequest['metadata'];
      }[];
      /** Whether to release what is left. */
      final?: boolean | undefined;
    },
    options?: CallOptions,
  ): Promise<SettlementReply>;
  renew(
    request: {
      leaseId: string;
      fence?: number | undefined;
      expiresIn?: number | undefined;
      idempotencyKey?: string | undefined;
    },
    options?: CallOptions,
  ): Promise<LeaseReply>;
  release(request: { leaseId: string }, options?: CallOptions): Promise<LeaseReply>;
  list(filter?: PageSize, options?: CallOptions): List<LeaseReply, LeasesReply>;
  get(id: string, options?: CallOptions): Promise<LeaseReply>;
}
