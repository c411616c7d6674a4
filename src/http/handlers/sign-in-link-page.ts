/**
 * The page behind a link that signs in. Only its button does, so that nothing happens when a mail scanner or a chat
 * opens the link.
 */
import type { Context, Middleware } from 'koa';
import type { Console } from '../../console/console.ts';
import { SIGN_IN_LINK_PATH } from '../../console/paths.ts';
import { ApiError } from '../../domain/errors.ts';
import { readForm } from '../body.ts';
import { BRAND, escapeHtml, respondPage, type HtmlPage } from './html-pages.ts';

/** `signIn` has the library answer the request, as one with this body in JSON. */
export function signInLinkPage(
  console: Pick<Console, 'isFromOwnPage'>,
  signIn: (ctx: Context, body: { readonly token: string }) => Promise<void>,
): Middleware {
  return async (ctx) => {
    if (ctx.method !== 'POST') {
      const { token } = ctx.query;
      return respondPage(ctx, 200, question(typeof token === 'string' ? token : ''), HEADERS);
    }
    // Otherwise, another site could sign its visitors in to an account of its own.
    if (!console.isFromOwnPage(ctx.req)) {
      throw new ApiError('foreign_origin', 'This form did not come from a page of the console.');
    }
    const form = await readForm(ctx.req);
    ctx.req.headers['content-type'] = 'application/json';
    await signIn(ctx, { token: form.get('token') ?? '' });
  };
}

/** Not `no-referrer`, which makes browsers send `Origin: null` with the form. No request names the token as its referrer. */
const HEADERS = { 'Referrer-Policy': 'strict-origin' } as const;

function question(token: string): HtmlPage {
  return {
    title: 'Sign in',
    isCard: true,
    body:
      `${BRAND}<h1>Sign in to the console</h1><form method="post" action="${SIGN_IN_LINK_PATH}">` +
      `<input type="hidden" name="token" value="${escapeHtml(token)}">` +
      '<button class="main">Sign in</button></form>' +
      '<p class="quiet">The link works once. If you did not expect it, close this page.</p>',
  };
}
