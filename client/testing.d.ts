/** Types of the fake for unit tests. */
import type {
  Amount,
  Farebox,
  FareboxConsumer,
  FareboxConsumerOptions,
  FareboxOptions,
  OnUnavailable,
} from './index.js';

/**
 * A Farebox in this process, for unit tests of programs that charge: no server, no network. It decides as the
 * service does, which one suite holds both to, and has what charging needs: charges, refunds, holds, tools with
 * rate cards, quotes, earnings and receipts; of consumers the balance, usage, budgets with their spend keys,
 * approvals, and top-ups, which succeed without a card. All else is `not_found`, leases among it. It is in test
 * mode: its keys are test keys, and the amounts that trigger a response (docs/test-mode.md) do so here.
 *
 * @example
 * const fake = new FakeFarebox();
 * const { apiKey } = fake.addConsumer({ balance: 1 });
 * const server = createMyServer(fake.farebox());
 */
export declare class FakeFarebox {
  readonly baseUrl: string;
  readonly secretKey: string;
  /** While it is true, every request gets 503: nothing happens. */
  isAway: boolean;
  /** A consumer and its key. */
  addConsumer(consumer?: { balance?: Amount | undefined }): { apiKey: string; consumerId: string };
  /** A client of its one developer. It tries once, unless `maxRetries` says otherwise. */
  farebox<Mode extends OnUnavailable = 'fail'>(options?: FareboxOptions<Mode>): Farebox<Mode>;
  /** A client of a consumer, by its key. */
  consumer(consumerKey: string, options?: FareboxConsumerOptions): FareboxConsumer;
  /** For clients that you make yourself: `new Farebox({ fetch: fake.fetch, ... })`. */
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}
