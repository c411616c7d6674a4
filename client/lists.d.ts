/** Lists of the API, and the records that can be listed and read by their ids. */
import type {
  ChargesReply,
  ConsumerChargeReply,
  DeveloperChargeReply,
  DeveloperTopUpsReply,
  HoldsReply,
  ListedCharge,
  ListedHold,
  TopUpQuoteReply,
  TopUpRecord,
  TopUpsReply,
  UsageReply,
} from './api.js';
import type { HoldsFilter } from './holds.js';
import type { CallOptions } from './index.js';
import type { Amount } from './money.js';

/**
 * A list of the API. `for await` gives each item of all pages, which are fetched as needed.
 *
 * @example for await (const charge of farebox.charges.list({ tool: 'search' })) console.log(charge.id);
 */
export interface List<Item, Page> extends AsyncIterable<Item> {
  /** The first page, or the page for a `nextCursor`. */
  page(cursor?: string): Promise<Page>;
}

export interface PageSize {
  /** Items per page, 1 to 100. Default 50. */
  limit?: number | undefined;
}

interface TimeRange {
  /** Inclusive: `2026-11-21` or `2026-11-21T09:30:00Z`. */
  from?: string | undefined;
  /** Exclusive. */
  to?: string | undefined;
}

export interface ConsumerChargesFilter extends TimeRange, PageSize {
  tool?: string | undefined;
}

export interface DeveloperChargesFilter extends ConsumerChargesFilter {
  consumerId?: string | undefined;
}

/** The charges that you made. */
export interface DeveloperCharges {
  /** Newest first. */
  list(
    filter?: DeveloperChargesFilter,
    options?: CallOptions,
  ): List<DeveloperChargeReply, ChargesReply>;
  /** Throws `not_found` when you made no such charge. */
  get(id: string, options?: CallOptions): Promise<DeveloperChargeReply>;
}

/** The charges to your balance. */
export interface ConsumerCharges {
  /** Newest first. Each page has the `total` of all matches. */
  list(filter?: ConsumerChargesFilter, options?: CallOptions): List<ListedCharge, UsageReply>;
  /** A charge with the credits that paid for it (`paidBy`). Throws `not_found` when there is none. */
  get(id: string, options?: CallOptions): Promise<ConsumerChargeReply>;
}

/** The holds on your balance. */
export interface ConsumerHolds {
  /** Newest first. */
  list(filter?: HoldsFilter, options?: CallOptions): List<ListedHold, HoldsReply>;
  /** Throws `hold_not_found` when there is none. */
  get(id: string, options?: CallOptions): Promise<ListedHold>;
}

/** The top-ups that were at least partly spent on your tools. */
export interface DeveloperTopUps {
  /** Newest first. */
  list(
    filter?: PageSize,
    options?: CallOptions,
  ): List<DeveloperTopUpsReply['topUps'][number], DeveloperTopUpsReply>;
}

/** The top-ups of your balance. */
export interface ConsumerTopUps {
  /** Newest first. */
  list(filter?: PageSize, options?: CallOptions): List<TopUpRecord, TopUpsReply>;
  /** Throws `not_found` when there is none. */
  get(id: string, options?: CallOptions): Promise<TopUpRecord>;
  /** What a top-up would cost now. `tax` and `total` are null while the tax is not known. */
  quote(request: { amount: Amount }, options?: CallOptions): Promise<TopUpQuoteReply>;
}
