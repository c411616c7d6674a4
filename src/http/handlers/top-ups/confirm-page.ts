/**
 * The page where a cardholder confirms a payment, if the bank requires it. It leads to the bank's own page
 * and back. Anyone who knows the top-up's id may open it: it can only finish this payment, which needs the
 * cardholder, and it shows nothing but the amount and its tax.
 */
import type { Context, Middleware } from 'koa';
import { LRUCache } from 'lru-cache';
import { ApiError } from '../../../domain/errors.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import { formatDollars } from '../../../domain/money.ts';
import { confirmationUrl, payableText } from '../../../domain/top-up.ts';
import { noteReported } from '../../../store/top-ups/note-pending-top-ups.ts';
import { findTopUp, type TopUp } from '../../../store/top-ups/top-ups.ts';
import { authenticate, type Authentication } from '../../../stripe/authentication.ts';
import { mayHaveTakenEffect } from '../../../stripe/errors.ts';
import type { Api } from '../../services.ts';
import { BRAND, escapeHtml, lookingAgain, respondPage, type HtmlPage } from '../html-pages.ts';

/** Undefined unless the top-up waits for the cardholder. */
export function confirmationUrlOf(consoleUrl: string, topUp: TopUp): string | undefined {
  const isWaiting = topUp.status === 'pending' && topUp.authenticationAskedAt !== null;
  return isWaiting ? confirmationUrl(consoleUrl, topUp.id) : undefined;
}

/**
 * How long a payment's bank page is not opened again, and no payment of the same consumer is reported again. Each calls
 * Stripe.
 */
const ASKED_MS = 2_000;
/** Beyond it, the oldest is forgotten. */
const REMEMBERED_MAX = 10_000;
const REMEMBERED = { max: REMEMBERED_MAX, ttl: ASKED_MS };

export function confirmPages(api: Api): Readonly<Record<'get' | 'post', Middleware>> {
  // Anybody who knows the address may send any number of requests. All get the same page, so none keeps the
  // cardholder out.
  const opened = new LRUCache<string, Promise<Authentication>, TopUp>({
    ...REMEMBERED,
    memoMethod: (_id, _stale, { context }) => openBank(api, context),
  });
  const reported = new LRUCache<string, true>(REMEMBERED);
  async function report(topUp: TopUp): Promise<boolean> {
    if (reported.has(topUp.consumerId)) return false;
    reported.set(topUp.consumerId, true);
    await noteReport(api, topUp);
    return true;
  }
  return {
    async get(ctx) {
      const topUp = await findAsked(api, ctx);
      if (!topUp) return respondPage(ctx, 404, UNKNOWN);
      if (topUp.status !== 'pending') return respondPage(ctx, 200, ended(topUp));
      const result = ctx.query['redirect_status'];
      // The bank's page that was opened is over.
      if (result !== undefined && (await report(topUp))) opened.delete(topUp.id);
      respondPage(
        ctx,
        200,
        result === 'succeeded'
          ? checking(topUp, ctx.query['looks'])
          : question(topUp, result === undefined ? undefined : 'failed'),
      );
    },
    /** Opens the bank's page. */
    async post(ctx) {
      const topUp = await findAsked(api, ctx);
      if (!topUp || topUp.paymentIntentId === null) return respondPage(ctx, 404, UNKNOWN);
      if (topUp.status !== 'pending') return respondPage(ctx, 200, ended(topUp));
      try {
        const next = await opened.memo(topUp.id, { context: topUp });
        if (next.kind === 'redirect') return respondPage(ctx, 200, leaving(next.url));
        await report(topUp);
        respondPage(
          ctx,
          200,
          next.kind === 'paid' ? checking(topUp, undefined) : question(topUp, 'unpaid'),
        );
      } catch (error) {
        if (error instanceof ApiError) throw error;
        api.log.warn(
          { err: error, topUpId: topUp.id },
          'could not open the confirmation of a payment',
        );
        if (mayHaveTakenEffect(error)) return respondPage(ctx, 500, question(topUp, 'unknown'));
        respondPage(ctx, 503, question(topUp, 'unavailable'));
      }
    },
  };
}

/**
 * Two at once for one top-up would confirm it twice, so the second one waits, as do those of the consumer's
 * other top-ups.
 */
async function openBank(api: Api, topUp: TopUp): Promise<Authentication> {
  const { id, consumerId, paymentIntentId } = topUp;
  const returnUrl = confirmationUrl(api.config.consoleUrl, id);
  return api.shares.oneByOne.run(`confirm-${consumerId}`, 1, () =>
    authenticate(api.stripe, paymentIntentId ?? '', returnUrl),
  );
}

/** A hint, so that the workflow asks at once. It asks anyway, so a failure changes nothing that the page says. */
async function noteReport(api: Api, { id }: TopUp): Promise<void> {
  try {
    await noteReported(api.database, id);
  } catch (error) {
    api.log.warn({ err: error, topUpId: id }, 'could not note the report of a payment');
  }
}

async function findAsked(api: Api, ctx: Context): Promise<TopUp | undefined> {
  const { id } = ctx.query;
  const topUpId = typeof id === 'string' ? uuidOf('topUp', id) : undefined;
  const topUp = topUpId && (await findTopUp(api.database, topUpId));
  return topUp && topUp.authenticationAskedAt !== null ? topUp : undefined;
}

const UNKNOWN: HtmlPage = {
  title: 'Nothing to confirm',
  isCard: true,
  body: `${BRAND}<h1>Nothing to confirm</h1><p>There is no payment to confirm at this address.</p>`,
};

/**
 * Only `unpaid` says that nothing was paid: Stripe has just reported it. In the other cases another tab may
 * have paid.
 */
const PROBLEMS = {
  failed: 'The bank did not confirm the payment. Try again: you pay only once.',
  unpaid: 'The bank did not confirm the payment. Nothing was paid. Try again.',
  unavailable: 'The bank cannot be reached right now. Try again later: you pay only once.',
  unknown: 'The bank did not answer, so you may have paid. Try again: you pay only once.',
} as const;

function question(topUp: TopUp, result: keyof typeof PROBLEMS | undefined): HtmlPage {
  const problem = result && PROBLEMS[result];
  return {
    title: 'Confirm your payment',
    isCard: true,
    body:
      `${BRAND}<h1>Confirm your payment</h1><p>Your bank wants you to confirm a top-up of ` +
      `${payableText(topUp)}, from your saved card.</p>` +
      (problem ? `<p class="problem" role="alert">${problem}</p>` : '') +
      '<form method="post"><button class="main">Confirm at your bank</button></form>' +
      '<p class="quiet">If you do not confirm the payment, you pay nothing, and the request expires within 24 hours.</p>',
  };
}

function leaving(url: string): HtmlPage {
  return {
    title: 'Opening your bank',
    isCard: true,
    refresh: { seconds: 0, url },
    body:
      `${BRAND}<h1>Opening your bank</h1><p>Your bank's page opens in a moment.</p>` +
      `<a class="button main" href="${escapeHtml(url)}">Go to your bank</a>`,
  };
}

/** Reloads the page without the payment's other parameters, which the bank's page added to the address. */
function checking(topUp: TopUp, looks: unknown): HtmlPage {
  const query = { id: wireId('topUp', topUp.id), redirect_status: 'succeeded' };
  const { link, ...reload } = lookingAgain(looks, query);
  return {
    title: 'Payment processing',
    isCard: true,
    ...reload,
    body:
      `${BRAND}<h1>Payment processing</h1><p role="status">Your bank confirmed the payment. We will add ` +
      `${formatDollars(topUp.amountMicros)} to your balance when it completes.</p>${link}`,
  };
}

function ended({ status, amountMicros }: TopUp): HtmlPage {
  const isUnpaid = status === 'failed' || status === 'expired';
  const title = isUnpaid ? 'Nothing was paid' : 'Payment received';
  // Not that it was added to the balance: a debt may have been repaid from it.
  const text = isUnpaid
    ? 'Your balance has not changed.'
    : `The top-up of ${formatDollars(amountMicros)} was paid. You can close this page.`;
  return {
    title,
    isCard: true,
    body: `${BRAND}<h1>${title}</h1><p role="status">${text}</p>`,
  };
}
