/** Direct top-ups, checkouts, and a consumer's list of top-ups (specification section 4.1). */
import { CHECKOUT_MICROS_MIN } from '../../../domain/checkout.ts';
import { ApiError, ERRORS, type ErrorCode } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import { isTest } from '../../../domain/mode.ts';
import { dollarsOf, formatDollars, isWholeCents, type Micros } from '../../../domain/money.ts';
import {
  openTopUpsMax,
  TOP_UP_MICROS_MIN,
  topUpMaxOf,
  type TopUpFailure,
} from '../../../domain/top-up.ts';
import type { PageQuery } from '../../../schemas/shapes.ts';
import type {
  CheckoutBody,
  CheckoutReply,
  TopUpBody,
  TopUpRecord,
  TopUpReply,
  TopUpsReply,
} from '../../../schemas/top-ups.ts';
import type { KeyOwner } from '../../../store/accounts/api-keys.ts';
import { getCounters } from '../../../store/balance/consumers.ts';
import {
  findTopUpOf,
  listTopUpsOf,
  type ListedTopUp,
  type TopUp,
} from '../../../store/top-ups/top-ups.ts';
import { FAILURE_CODES, FAILURES } from '../../../stripe/verdict.ts';
import {
  requestTopUp,
  type TopUpRequest,
  type TopUpResult,
} from '../../../top-ups/request-top-up.ts';
import { amountOf, balanceTooLarge, type AmountRule } from '../../amounts.ts';
import { afterCommit, outcomeUnknown } from '../../answer-errors.ts';
import { isSignedIn } from '../../callers.ts';
import { authenticateAgain } from '../../authenticate.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { idIn, noSuch } from '../../look-ups.ts';
import { listPage } from '../../pagination.ts';
import { keyReused } from '../../repeated-requests.ts';
import { REPLAYED } from '../../respond.ts';
import { confirmationUrlOf } from './confirm-page.ts';

/** The errors of a request that charges the saved card: why it was not charged, or why the charge failed. */
export const DIRECT_TOP_UP_ERRORS: readonly ErrorCode[] = FAILURE_CODES;

/** One of a hundred may be paid, or expire, at any time. */
const OPEN_RETRY_SECONDS = 60;

/**
 * Charges the saved card. 201 `completed`; 202 `pending` when that takes more than 10 seconds, or when the
 * bank wants the cardholder to confirm it at `sessionUrl`.
 */
export async function postTopUp(
  api: Api,
  request: Request<TopUpBody>,
): Promise<Reply<TopUpReply, 201 | 202>> {
  const { topUp, isReplay } = await startTopUp(api, request, 'direct', TOP_UP_MICROS_MIN);
  const { balanceMicros } = await afterCommit(() => getCounters(api.database, request.caller));
  return {
    status: topUp.status === 'pending' ? 202 : 201,
    body: {
      topUpId: wireId('topUp', topUp.id),
      amount: dollarsOf(topUp.amountMicros),
      balance: dollarsOf(balanceMicros),
      status: topUp.status,
      ...sessionUrlOf(api, topUp),
    },
    ...(isReplay && { headers: REPLAYED }),
  };
}

/** 201 with the URL to send the consumer to; 202 without one when Stripe takes more than 10 seconds. */
export async function postCheckout(
  api: Api,
  request: Request<CheckoutBody>,
): Promise<Reply<CheckoutReply, 201 | 202>> {
  const { topUp, isReplay } = await startTopUp(api, request, 'checkout', CHECKOUT_MICROS_MIN);
  const sessionUrl = checkoutUrlOf(api, topUp);
  return {
    status: sessionUrl === null ? 202 : 201,
    body: {
      topUpId: wireId('topUp', topUp.id),
      status: topUp.status,
      ...(sessionUrl === null ? {} : { sessionUrl }),
    },
    ...(isReplay && { headers: REPLAYED }),
  };
}

/**
 * Where to pay; a test top-up needs no payment, so its page says that it is done. Null while Stripe has not
 * answered.
 */
export function checkoutUrlOf({ config }: Pick<Api, 'config'>, topUp: TopUp): string | null {
  if (!isTest(topUp)) return topUp.sessionUrl;
  return `${config.consoleUrl}/top-up?id=${wireId('topUp', topUp.id)}&result=test`;
}

/**
 * Starts a top-up, or finds the one that the idempotency key started: pending, credited or expired. Throws the ApiError
 * of a refusal or failure.
 */
export async function startTopUp(
  api: Api,
  {
    caller,
    body,
    idempotencyKey,
  }: Pick<Request<CheckoutBody>, 'caller' | 'body' | 'idempotencyKey'>,
  method: TopUpRequest['method'],
  min: Micros,
): Promise<{ readonly topUp: TopUp; readonly isReplay: boolean }> {
  const amountMicros = amountOf('amount', body.amount, payableFrom(api, min));
  const asked = {
    consumer: caller,
    method,
    amountMicros,
    idempotencyKey,
    savesCard: method === 'checkout' && body.saveCard === true,
    byKey: !isSignedIn(caller),
  };
  const result = await requestTopUp(api.topUps, asked, (write) =>
    api.shares.topUps.run(caller, async () => {
      // The key or session may have ended while the request waited for its turn.
      await authenticateAgain(api.database, caller, 'consumer');
      return write();
    }),
  );
  const { kind, isReplay = false } = result;
  if (kind === 'completed' || kind === 'pending' || kind === 'expired') {
    return { topUp: result.topUp, isReplay };
  }
  throw refusalOf(api, result, caller, amountMicros);
}

type Refusal = Exclude<TopUpResult, { kind: 'completed' | 'pending' | 'expired' }>;

function refusalOf(api: Api, refusal: Refusal, caller: KeyOwner, amount: Micros): ApiError {
  // A page that opens a checkout; POST /v1/checkout does the same for a program.
  const topUpUrl = api.topUpLinks.urlFor(caller.consumerId, undefined, amount);
  switch (refusal.kind) {
    case 'unavailable':
      return new ApiError(
        'service_unavailable',
        'Top-ups are unavailable at the moment; nothing was started. Try again shortly.',
        { retryAfterSeconds: 5, isOnDemand: refusal.isOnDemand ?? false },
      );
    case 'unknown':
      return outcomeUnknown(refusal.error);
    case 'key_reused':
      return keyReused('This Idempotency-Key was used for a top-up with another amount or method.');
    case 'consent_required':
      return new ApiError(
        'consent_required',
        "The account's owner has not consented to direct top-ups; checkout without saveCard needs no consent.",
        { facts: { topUpUrl } },
      );
    case 'consent_ceiling_reached':
      return new ApiError(
        'consent_ceiling_reached',
        'This would exceed the monthly ceiling that the owner set for direct top-ups.',
        { facts: { topUpUrl, left: dollarsOf(refusal.leftMicros) } },
      );
    case 'too_much_credited':
      return balanceTooLarge();
    case 'too_many_open':
      return new ApiError(
        'rate_limited',
        `With ${openTopUpsMax({ byKey: !isSignedIn(caller) })} open top-ups, no more can be opened. Pay one, or wait until one expires.`,
        { retryAfterSeconds: OPEN_RETRY_SECONDS },
      );
    case 'declined_too_often':
      return new ApiError(refusal.kind, FAILURES.declined_too_often, {
        facts: { topUpUrl },
        retryAfterSeconds: Math.ceil(refusal.retryAfterMs / 1_000),
      });
    case 'failed':
      return new ApiError(codeOf(refusal.failure), refusal.failure.message, {
        facts: { topUpUrl, topUpId: wireId('topUp', refusal.topUp.id) },
      });
  }
}

function codeOf({ code }: TopUpFailure): ErrorCode {
  return Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : 'payment_failed';
}

/** Whole cents, from `min` to Stripe's maximum or, with tax on, to what leaves room for the tax. */
export function payableFrom(api: Pick<Api, 'config'>, min: Micros): AmountRule {
  const max = maxPayable(api);
  return {
    accepts: (amount) => isWholeCents(amount) && amount >= min && amount <= max,
    says: `whole cents, from ${formatDollars(min)} to ${formatDollars(max)}`,
  };
}

export function maxPayable({ config }: Pick<Api, 'config'>): Micros {
  return topUpMaxOf(config.stripe.tax !== undefined);
}

export async function listTopUps(
  api: Api,
  { caller, query }: Request<undefined, PageQuery>,
): Promise<Reply<TopUpsReply>> {
  const { rows, hasMore, nextCursor } = await listPage(query, 'topUp', (page) =>
    listTopUpsOf(api.database, caller.consumerId, page),
  );
  return {
    status: 200,
    body: { topUps: rows.map((each) => wireTopUp(api, each)), hasMore, nextCursor },
  };
}

export async function getTopUp(api: Api, { caller, params }: Request): Promise<Reply<TopUpRecord>> {
  const id = idIn('topUp', params);
  const topUp = id && (await findTopUpOf(api.database, caller.consumerId, id));
  if (!topUp) throw noSuch('top-up');
  return { status: 200, body: wireTopUp(api, topUp) };
}

function wireTopUp(api: Api, topUp: ListedTopUp): TopUpRecord {
  const { failureCode, failureMessage } = topUp;
  return {
    id: wireId('topUp', topUp.id),
    amount: dollarsOf(topUp.amountMicros),
    refunded: dollarsOf(topUp.refundedMicros),
    ...(topUp.isTaxed && { tax: isTaxKnown(topUp) ? dollarsOf(topUp.taxMicros) : null }),
    status: topUp.status,
    method: topUp.method,
    automatic: topUp.automatic,
    createdAt: topUp.createdAt,
    completedAt: topUp.completedAt,
    failure: failureCode === null ? null : { code: failureCode, message: failureMessage ?? '' },
    ...sessionUrlOf(api, topUp),
  };
}

function isTaxKnown({ seenVerdict, taxCalculationId }: TopUp): boolean {
  return seenVerdict === 'paid' || taxCalculationId !== null;
}

/** Where the payer can pay or confirm, while that is possible. */
export function sessionUrlOf({ config }: Api, topUp: TopUp): { readonly sessionUrl?: string } {
  const open = topUp.status === 'pending' && !topUp.isUnderWay ? topUp.sessionUrl : null;
  const sessionUrl = open ?? confirmationUrlOf(config.consoleUrl, topUp);
  return sessionUrl === undefined ? {} : { sessionUrl };
}
