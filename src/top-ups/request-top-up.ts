/**
 * Requests a top-up: writes its row, then starts its workflow. Only the row decides whether anything happened, so that
 * "nothing happened" is never reported for a top-up that may take money.
 */
import type { Logger } from 'pino';
import { HOUR_MS } from '../domain/durations.ts';
import { MAGIC_TOP_UPS, type MagicTopUp } from '../domain/magic-amounts.ts';
import { isTest } from '../domain/mode.ts';
import { asMicros, type Micros } from '../domain/money.ts';
import type { TopUpFailure } from '../domain/top-up.ts';
import type { Database } from '../store/database.ts';
import { isDatabaseUnavailable } from '../store/failures.ts';
import { makeTestTopUp } from '../store/top-ups/test-top-ups.ts';
import { admitTopUp } from '../store/top-ups/admit-top-up.ts';
import { acceptTopUp, withdrawTopUp } from '../store/top-ups/claim-top-up.ts';
import { findTopUp, type NewTopUp, type TopUp } from '../store/top-ups/top-ups.ts';
import type { TemporalClient } from '../temporal/client.ts';
import { startCheckout, startDirectTopUp } from '../temporal/start-top-up.ts';

/** Longer than the default: a Temporal that is only slow must not make a top-up fail that it has accepted. */
const UP_WITHIN_MS = 3_000;

export interface RequestTopUpDeps {
  readonly database: Database;
  readonly temporal: TemporalClient;
  readonly log: Logger;
  /** How long the caller waits for a first answer of the processor. */
  readonly answerMs: number;
}

/** Waits for a turn of the account, so that its requests, which lock one another, do not take every connection. */
export type InTurn = <T>(write: () => Promise<T>) => Promise<T>;

type Owner = 'ledger' | 'consumerId' | 'accountId';

export interface TopUpRequest extends Omit<NewTopUp, Owner> {
  readonly consumer: Pick<NewTopUp, Owner>;
}

export type TopUpResult =
  /** Credited, even if refunded or disputed since. */
  | { readonly kind: 'completed'; readonly topUp: TopUp }
  /** In progress. A checkout's `topUp.sessionUrl` is null while Stripe has not answered yet. */
  | { readonly kind: 'pending'; readonly topUp: TopUp }
  | { readonly kind: 'expired'; readonly topUp: TopUp }
  | { readonly kind: 'failed'; readonly topUp: TopUp; readonly failure: TopUpFailure }
  | { readonly kind: 'key_reused' }
  | { readonly kind: 'consent_required' }
  | { readonly kind: 'too_many_open' }
  | { readonly kind: 'declined_too_often'; readonly retryAfterMs: number }
  | { readonly kind: 'consent_ceiling_reached'; readonly leftMicros: Micros }
  /** Test mode: the balance would be more than can be counted. */
  | { readonly kind: 'too_much_credited' }
  /** Nothing happened, and nothing will. */
  | { readonly kind: 'unavailable'; readonly isOnDemand?: boolean }
  /** The row is written, and the database could not be asked since. */
  | { readonly kind: 'unknown'; readonly error: unknown };

interface Replayable {
  /** An earlier request with the same idempotency key made the top-up. */
  readonly isReplay?: boolean;
}

/** Specification section 4.1, `POST /v1/top-up` and `POST /v1/checkout`. */
export async function requestTopUp(
  deps: RequestTopUpDeps,
  request: TopUpRequest,
  inTurn: InTurn,
): Promise<TopUpResult & Replayable> {
  if (isTest(request.consumer)) return requestTestTopUp(deps.database, request, inTurn);
  const { consumer, method, ...asked } = request;
  const admitted = await inTurn(() => admitTopUp(deps.database, { ...consumer, method, ...asked }));
  if (!('topUp' in admitted)) return admitted;
  const { topUp } = admitted;
  const replay = admitted.kind === 'known' && { isReplay: true };
  const waitsForPayer = topUp.sessionUrl !== null || topUp.authenticationAskedAt !== null;
  if (topUp.status !== 'pending' || waitsForPayer) {
    return { ...resultOf(topUp), ...replay };
  }
  try {
    return { ...(await begin(deps, topUp, method)), ...replay };
  } catch (error) {
    if (isDatabaseUnavailable(error)) return { kind: 'unknown', error };
    throw error;
  }
}

/** Starts the workflow of a row, and waits for its first answer. */
async function begin(
  deps: RequestTopUpDeps,
  topUp: TopUp,
  method: TopUpRequest['method'],
): Promise<TopUpResult> {
  const start = method === 'checkout' ? startCheckout : startDirectTopUp;
  const answer = await start(deps.temporal, topUp, { timeoutMs: deps.answerMs });
  if (answer.kind !== 'answered') {
    const err = answer.kind === 'unavailable' ? answer.error : undefined;
    deps.log.warn({ topUpId: topUp.id, err }, 'no answer from the workflow of a top-up');
    // While Temporal answers, the top-up will begin eventually, through the start or through its notice; withdrawing it
    // would only make the caller add another one. Otherwise, either this deletes the row, and a workflow that starts
    // after all finds none and ends, or the row stays, because the workflow has claimed it or another request with the
    // same key has answered 202.
    const isUp =
      answer.kind === 'closed' ||
      (answer.kind === 'timed_out' && (await deps.temporal.isUp(UP_WITHIN_MS)));
    if (isUp) await acceptTopUp(deps.database, topUp.id);
    else if (await withdrawTopUp(deps.database, topUp.id)) return { kind: 'unavailable' };
  }
  const now = await findTopUp(deps.database, topUp.id);
  return now ? resultOf(now) : { kind: 'unavailable' };
}

/** Play money: credited when this returns, or ended as the amount asks for. */
async function requestTestTopUp(
  database: Database,
  { consumer, method, amountMicros, idempotencyKey }: TopUpRequest,
  inTurn: InTurn,
): Promise<TopUpResult & Replayable> {
  // Only for the saved card: at checkout, the payer types in any card.
  const magic = method === 'direct' ? MAGIC_TOP_UPS.get(amountMicros) : undefined;
  if (magic && magic.kind !== 'failed') return refusalOnDemand(magic.kind);
  const asked = { ...consumer, amountMicros, idempotencyKey, failure: magic?.failure };
  const made = await inTurn(() => makeTestTopUp(database, asked));
  return 'topUp' in made ? { ...resultOf(made.topUp), isReplay: made.kind === 'known' } : made;
}

function refusalOnDemand(kind: Exclude<MagicTopUp['kind'], 'failed'>): TopUpResult {
  switch (kind) {
    case 'consent_ceiling_reached':
      return { kind, leftMicros: asMicros(0) };
    case 'declined_too_often':
      return { kind, retryAfterMs: HOUR_MS };
    case 'consent_required':
    case 'too_many_open':
      return { kind };
    case 'unavailable':
      return { kind, isOnDemand: true };
  }
}

function resultOf(topUp: TopUp): TopUpResult {
  switch (topUp.status) {
    case 'pending':
      return { kind: 'pending', topUp };
    case 'expired':
      return { kind: 'expired', topUp };
    case 'failed':
      return {
        kind: 'failed',
        topUp,
        failure: {
          code: topUp.failureCode ?? 'card_declined',
          message: topUp.failureMessage ?? 'The payment failed.',
        },
      };
    case 'completed':
    case 'partially_refunded':
    case 'refunded':
    case 'disputed':
    case 'charged_back':
      return { kind: 'completed', topUp };
  }
}
