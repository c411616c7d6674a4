/**
 * The page that `topUpUrl` opens. A signed link names the consumer, so nobody signs in or types a key. The page can
 * only take a payment and show it: no balance, no charges, nothing else of the account.
 */
import { hash, randomUUID } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import type { TopUpLink } from '../../../signing/top-up-links.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import { isTest } from '../../../domain/mode.ts';
import { dollarsOf, formatDollars, microsOfDollars, type Micros } from '../../../domain/money.ts';
import { CHECKOUT_MICROS_MIN } from '../../../domain/checkout.ts';
import { isCredited } from '../../../domain/top-up.ts';
import { findHolder } from '../../../store/accounts/test-accounts.ts';
import { findReturnUrl } from '../../../store/accounts/return-urls.ts';
import {
  findTopUp,
  findTopUpOf,
  listIdempotencyKeys,
  type TopUp,
} from '../../../store/top-ups/top-ups.ts';
import {
  requestTopUp,
  type TopUpRequest,
  type TopUpResult,
} from '../../../top-ups/request-top-up.ts';
import { readForm } from '../../body.ts';
import { redirectTo } from '../../respond.ts';
import { cookieOf } from '../../cookies.ts';
import type { Api } from '../../services.ts';
import { BRAND, escapeHtml, lookingAgain, respondPage, type HtmlPage } from '../html-pages.ts';
import { checkoutUrlOf, maxPayable, payableFrom } from './top-ups.ts';

/** A little longer than a checkout can be paid. */
const COOKIE_SECONDS = 25 * 3_600;
/** The next three of these are offered beside the suggested amount, in dollars: a smaller one would not be enough. */
const AMOUNTS = [10, 25, 50, 100, 250, 500, 1_000, 2_500];
const UUID = /^[0-9a-f-]{36}$/;

export function topUpPage(api: Api): Middleware {
  return async (ctx) => {
    const { link, id, result, returnUrl } = query(ctx);
    if (id !== undefined) return showResult(api, ctx, id, result);
    const read = readLink(api, link);
    const holder = read && (await findHolder(api.database, read.consumerId));
    if (!holder || link === undefined) return respondPage(ctx, 404, EXPIRED);
    respondPage(ctx, 200, choice(api, read, { link, returnUrl, isTest: isTest(holder) }));
  };
}

/** Opens the checkout and links to it. */
export function postTopUpPage(api: Api): Middleware {
  return async (ctx) => {
    const form = await readForm(ctx.req);
    const link = form.get('link') ?? '';
    const returnUrl = form.get('returnUrl') ?? undefined;
    const read = readLink(api, link);
    const holder = read && (await findHolder(api.database, read.consumerId));
    if (!holder) return respondPage(ctx, 404, EXPIRED);
    const again = (status: number, problem: string) =>
      respondPage(
        ctx,
        status,
        choice(api, read, { link, returnUrl, problem, isTest: isTest(holder) }),
      );
    const amountMicros = amountOf(api, form.get('amount') ?? '');
    if (amountMicros === undefined) {
      const [least, most] = [formatDollars(CHECKOUT_MICROS_MIN), formatDollars(maxPayable(api))];
      return again(
        400,
        `Enter an amount of at least ${least} and at most ${most}, in whole cents.`,
      );
    }
    const outcome = await openCheckout(api, holder, {
      amountMicros,
      prefix: `link-${hash('sha256', link).slice(0, 16)}-`,
      attempt: form.get('attempt') ?? '',
    });
    if (outcome === 'too_many') {
      return again(429, 'This link has reached its limit of checkouts. Sign in to top up.');
    }
    if (outcome.kind === 'too_many_open') {
      return again(429, 'Too many payment pages are open for this balance. Sign in to top up.');
    }
    const sessionUrl = 'topUp' in outcome ? checkoutUrlOf(api, outcome.topUp) : null;
    if (!('topUp' in outcome) || sessionUrl === null) {
      return again(
        503,
        'The payment page cannot be opened right now. Nothing was paid. Try again.',
      );
    }
    respondPage(ctx, 200, leaving(sessionUrl), {
      'Set-Cookie': linkCookie(api, outcome.topUp, link, returnUrl),
    });
  };
}

/** Otherwise one link could open any number of checkouts. */
const CHECKOUTS_PER_LINK = 10;

interface Attempt {
  readonly amountMicros: Micros;
  /** The beginning of this link's idempotency keys. */
  readonly prefix: string;
  readonly attempt: string;
}

/** The same form sent twice opens one checkout; another amount opens another. */
function openCheckout(
  api: Api,
  consumer: TopUpRequest['consumer'],
  { amountMicros, prefix, attempt }: Attempt,
): Promise<TopUpResult | 'too_many'> {
  const idempotencyKey = `${prefix}${UUID.test(attempt) ? attempt : randomUUID()}-${amountMicros}`;
  return api.shares.oneByOne.run(prefix, 1, async () => {
    const keys = await listIdempotencyKeys(api.database, consumer.consumerId, prefix);
    if (keys.length >= CHECKOUTS_PER_LINK && !keys.includes(idempotencyKey)) return 'too_many';
    return requestTopUp(
      api.topUps,
      { consumer, method: 'checkout', amountMicros, idempotencyKey, byLink: true },
      // Holders of links wait in the queue of the keys, so the owner does not wait behind them.
      (write) =>
        api.shares.topUps.run({ accountId: consumer.accountId, keyId: '', spend: null }, write),
    );
  });
}

/** The page to which the payment page returns people. */
async function showResult(
  api: Api,
  ctx: Context,
  id: string,
  result: string | undefined,
): Promise<void> {
  const topUpId = uuidOf('topUp', id);
  if (result === 'test') {
    const made = topUpId && (await findTopUp(api.database, topUpId));
    return respondPage(
      ctx,
      200,
      made && isTest(made) && isCredited(made.status) ? PLAY_MONEY : canceled(undefined, undefined),
    );
  }
  if (
    topUpId &&
    cookieOf(ctx.req, cookieName(api, topUpId)) === undefined &&
    api.console.hasSession(ctx.req)
  ) {
    const back = new URLSearchParams({
      topUp: id,
      result: result === 'paid' ? 'paid' : 'canceled',
    });
    return redirectTo(ctx, `/console/balance?${back.toString()}`);
  }
  // A token has no `~`, but an encoded address may.
  const [token = '', ...encoded] =
    (topUpId && cookieOf(ctx.req, cookieName(api, topUpId)))?.split('~') ?? [];
  const link = api.topUpLinks.read(token);
  const topUp = topUpId && link && (await findTopUpOf(api.database, link.consumerId, topUpId));
  const back = link && (await returnTo(api, link, decoded(encoded.join('~'))));
  // A checkout that was left may have been paid: in another tab, or before somebody went back to it.
  if (topUp && isCredited(topUp.status)) return respondPage(ctx, 200, credited(topUp, back));
  if (result === 'paid') {
    return respondPage(ctx, 200, paid(topUp || undefined, back, ctx.query['looks']));
  }
  const retry =
    link && link.expiresAtMs > api.clock.nowMs()
      ? `/top-up?link=${encodeURIComponent(token)}`
      : undefined;
  const isOver = topUp && topUp.status !== 'pending';
  respondPage(ctx, 200, isOver ? canceled(retry, back) : left(retry, back));
}

function query(ctx: Context): Record<'link' | 'id' | 'result' | 'returnUrl', string | undefined> {
  const one = (name: string) => {
    const value = ctx.query[name];
    return typeof value === 'string' ? value : undefined;
  };
  return { link: one('link'), id: one('id'), result: one('result'), returnUrl: one('returnUrl') };
}

function readLink(api: Api, token: string | undefined): TopUpLink | undefined {
  const link = token === undefined ? undefined : api.topUpLinks.read(token);
  return link && link.expiresAtMs > api.clock.nowMs() ? link : undefined;
}

/**
 * The page that the link asks for, if it has the origin that the developer registered; otherwise the registered page.
 * So a tampered link cannot lead anywhere else.
 */
async function returnTo(api: Api, link: TopUpLink, asked: string): Promise<URL | undefined> {
  const registered = link.developerId && (await findReturnUrl(api.database, link.developerId));
  if (!registered) return undefined;
  const wanted = URL.parse(asked);
  const home = new URL(registered);
  // Not `origin`: that of `blob:https://...` is the one inside it.
  return wanted?.protocol === home.protocol && wanted.host === home.host ? wanted : home;
}

function amountOf(api: Api, text: string): Micros | undefined {
  const amount = microsOfDollars(text);
  const payable = payableFrom(api, CHECKOUT_MICROS_MIN);
  return amount !== undefined && payable.accepts(amount) ? amount : undefined;
}

/**
 * Tells the page to which people return which link they came from; another browser sees less. With its path, other
 * requests do not carry it: anybody with links can send a browser here many times, and a request with many cookies is
 * refused.
 */
function linkCookie(api: Api, topUp: TopUp, link: string, returnUrl = ''): string {
  const secure = isOverTls(api) ? '; Secure' : '';
  return (
    `${cookieName(api, topUp.id)}=${link}~${encodeURIComponent(returnUrl)}; Path=/top-up; HttpOnly; ` +
    `SameSite=Lax; Max-Age=${COOKIE_SECONDS}${secure}`
  );
}

/** Reverses `encodeURIComponent`, and accepts anything else that a browser sends. */
function decoded(text: string): string {
  return new URLSearchParams(`text=${text}`).get('text') ?? '';
}

/** With `__Secure-`, no page without TLS can set it. `__Host-` would allow no path. */
function cookieName(api: Api, topUpId: string): string {
  return `${isOverTls(api) ? '__Secure-' : ''}farebox_${wireId('topUp', topUpId)}`;
}

function isOverTls({ config }: Api): boolean {
  return config.consoleUrl.startsWith('https:');
}

const EXPIRED: HtmlPage = {
  title: 'Link expired',
  isCard: true,
  body:
    `${BRAND}<h1>This link has expired</h1><p>Top-up links work for one hour. Run the tool again to get a new ` +
    'one, or sign in to top up.</p><a class="button main" href="/console/balance">Sign in</a>',
};

interface Choice {
  readonly link: string;
  readonly returnUrl?: string | undefined;
  readonly problem?: string;
  readonly isTest: boolean;
}

function choice(
  api: Api,
  { suggestedMicros: missingMicros }: TopUpLink,
  { link, returnUrl = '', problem, isTest: isPlay }: Choice,
): HtmlPage {
  const maxMicros = maxPayable(api);
  const suggestedMicros = missingMicros < maxMicros ? missingMicros : maxMicros;
  const dollars = dollarsOf(suggestedMicros);
  const others = AMOUNTS.filter((amount) => amount > dollars).slice(0, 3);
  const form =
    '<form method="post" action="/top-up">' +
    `<input type="hidden" name="link" value="${escapeHtml(link)}">` +
    `<input type="hidden" name="returnUrl" value="${escapeHtml(returnUrl)}">` +
    `<input type="hidden" name="attempt" value="${randomUUID()}">`;
  return {
    title: 'Top up',
    isCard: true,
    body:
      `${BRAND}<h1>Top up your balance</h1><p>Your balance is too low for a tool that you use. Choose an amount; ` +
      (isPlay
        ? 'this is test mode, so it is play money and nobody pays.</p>'
        : 'you pay on the next page.</p>') +
      (problem === undefined ? '' : `<p class="problem" role="alert">${escapeHtml(problem)}</p>`) +
      `${form}<button class="main" name="amount" value="${dollars}">${isPlay ? 'Add' : 'Pay'} ${formatDollars(suggestedMicros)}</button>` +
      `<div class="amounts">${others.map(offer).join('')}</div></form>` +
      `${form}<label for="other">Other amount in dollars</label><div class="row">` +
      `<input id="other" name="amount" type="number" inputmode="decimal" min="${dollarsOf(CHECKOUT_MICROS_MIN)}" max="${dollarsOf(maxMicros)}" step="0.01" required>` +
      '<button>Continue</button></div></form>' +
      `<p class="quiet">At least ${formatDollars(CHECKOUT_MICROS_MIN)}. This link can only add money to one balance. It does not sign anyone in.</p>`,
  };
}

function offer(dollars: number): string {
  return `<button name="amount" value="${dollars}">$${dollars.toLocaleString('en-US')}</button>`;
}

function leaving(sessionUrl: string): HtmlPage {
  return {
    title: 'Opening checkout',
    isCard: true,
    refresh: { seconds: 0, url: sessionUrl },
    body:
      `${BRAND}<h1>Opening checkout</h1><p>The payment page opens in a moment.</p>` +
      `<a class="button main" href="${escapeHtml(sessionUrl)}">Go to checkout</a>`,
  };
}

function paid(topUp: TopUp | undefined, back: URL | undefined, looks: unknown): HtmlPage {
  if (topUp?.status === 'pending') {
    const query = { id: wireId('topUp', topUp.id), result: 'paid' };
    const { link, ...reload } = lookingAgain(looks, query);
    return {
      title: 'Payment processing',
      isCard: true,
      ...reload,
      body:
        `${BRAND}<h1>Payment processing</h1><p role="status">We will add ${formatDollars(topUp.amountMicros)} to your balance when ` +
        'the payment completes. A card payment takes a moment; a bank debit takes several days. You can close this page.</p>' +
        link,
    };
  }
  // Another browser than the one that opened the checkout: how much was paid, and whether yet, is not shown to it.
  if (!topUp) {
    return {
      title: 'Payment processing',
      isCard: true,
      body:
        `${BRAND}<h1>Payment processing</h1><p role="status">We will add the money to your balance when the payment ` +
        'completes. A card payment takes a moment; a bank debit takes several days. Then run the tool again. You can close ' +
        'this page.</p>',
    };
  }
  return canceled(undefined, back);
}

/** Whether the account owes anything is not shown, so not whether the payment covers the call that was refused. */
function credited({ amountMicros }: TopUp, back: URL | undefined): HtmlPage {
  const next = back ? 'Go back and run the tool again.' : 'Run the tool again.';
  return {
    title: 'Payment received',
    isCard: true,
    body:
      `${BRAND}<h1>Payment received</h1><p role="status">The top-up of ${formatDollars(amountMicros)} was paid. ${next} ` +
      'If it still refuses, <a href="/console/balance">sign in</a> and look at the balance.</p>' +
      backLink(back),
  };
}

const PLAY_MONEY: HtmlPage = {
  title: 'Test mode',
  isCard: true,
  body:
    `${BRAND}<h1>Play money was added</h1><p role="status">This is test mode: no payment was made, and only test keys ` +
    'can spend the balance. Run the tool again.</p>',
};

function canceled(retry: string | undefined, back: URL | undefined): HtmlPage {
  return unpaid('Nothing was paid', 'Your balance has not changed.', retry, back);
}

/**
 * While the checkout is open, and for another browser: it may be paid in another tab, where a bank debit
 * takes days.
 */
function left(retry: string | undefined, back: URL | undefined): HtmlPage {
  return unpaid(
    'You left the payment page',
    'No payment has arrived. If you paid in another tab, we will add the money to your balance when the payment arrives.',
    retry,
    back,
  );
}

function unpaid(
  title: string,
  text: string,
  retry: string | undefined,
  back: URL | undefined,
): HtmlPage {
  return {
    title,
    isCard: true,
    body:
      `${BRAND}<h1>${title}</h1><p role="status">${text}</p>` +
      (retry === undefined
        ? ''
        : `<p><a class="button main" href="${retry}">Choose an amount</a></p>`) +
      backLink(back),
  };
}

function backLink(back: URL | undefined): string {
  if (!back) return '';
  return `<a class="button" href="${escapeHtml(back.href)}" rel="noreferrer">Return to ${escapeHtml(back.host)}</a>`;
}
