/** What every operation of the simulator works with: one transaction, one instant, one request. */
import type { Params } from './http/params.ts';
import type { Reply } from './http/answers.ts';
import type { Store } from './store.ts';

export interface Context {
  readonly store: Store;
  /** Where the hosted pages are, without a slash at the end. */
  readonly baseUrl: string;
  /** Unix seconds, as everywhere on Stripe. */
  readonly now: number;
  /** How long a bank debit takes when no control settles it. */
  readonly settleAfterSeconds: number;
  /** The API request that causes this, or null for the page, the clock and the controls. */
  readonly request: { readonly id: string; readonly idempotency_key: string | null } | null;
}

/** Answers one API request; `id` is the one in the path, or empty. */
export type Handler = (context: Context, params: Params, id: string) => Reply;
