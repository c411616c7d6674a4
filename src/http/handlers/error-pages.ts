/** The list of error codes, and a page for each: its meaning, its effect, and the endpoints that return it. */
import type { Middleware } from 'koa';
import { ApiError, ERRORS, errorTypeOf, type ErrorCode } from '../../domain/errors.ts';
import type { Endpoint } from '../endpoint.ts';
import { errorCodesOf } from '../openapi/errors.ts';
import { respondPage, type HtmlPage } from './html-pages.ts';

const LIST: HtmlPage = {
  title: 'Error codes',
  body:
    '<h1>Error codes</h1><p>2xx: durable. 4xx except 409, and 503: nothing happened. 409, 500 or a dropped ' +
    'connection: unknown; repeat the request with the same <code>Idempotency-Key</code> to find out.</p><dl>' +
    Object.entries(ERRORS)
      .map(
        ([code, [status, meaning]]) =>
          `<dt id="${code}"><a href="/docs/errors/${code}"><code>${code}</code></a> ${status}</dt>` +
          `<dd>${htmlOfMeaning(meaning)}</dd>`,
      )
      .join('') +
    '</dl>',
};

export const errorsPage: Middleware = async (ctx) => respondPage(ctx, 200, LIST);

/** `/docs/errors/:code`. */
export function errorPage(endpoints: readonly Endpoint[]): Middleware {
  return async (ctx) => {
    const code = ctx.path.slice(ctx.path.lastIndexOf('/') + 1);
    if (!isCode(code)) throw new ApiError('not_found', 'There is no such error code.');
    respondPage(ctx, 200, pageOf(code, endpoints));
  };
}

function isCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

function pageOf(code: ErrorCode, endpoints: readonly Endpoint[]): HtmlPage {
  const [status, meaning] = ERRORS[code];
  const returning = endpoints.filter((endpoint) => errorCodesOf(endpoint).has(code));
  const list = returning
    .map(({ method, path }) => `<li><code>${method.toUpperCase()} ${path}</code></li>`)
    .join('');
  return {
    title: code,
    body:
      `<p class="brand"><a href="/docs/errors">Error codes</a></p><h1><code>${code}</code></h1>` +
      `<p>${htmlOfMeaning(meaning)}</p><dl>` +
      `<dt>Status</dt><dd>${status}</dd>` +
      `<dt>Type</dt><dd><code>${errorTypeOf(code)}</code></dd>` +
      `<dt>Effect</dt><dd>${effectOf(code)}</dd>` +
      (list && `<dt>Returned by</dt><dd><ul>${list}</ul></dd>`) +
      '</dl>',
  };
}

const FAILS_AGAIN: ReadonlySet<ErrorCode> = new Set([
  'approval_closed',
  'approval_not_needed',
  'grant_not_active',
  'hold_closed',
]);

function effectOf(code: ErrorCode): string {
  if (FAILS_AGAIN.has(code) || code.endsWith('_exists')) {
    return 'Nothing happened. The same request fails again.';
  }
  const [status] = ERRORS[code];
  if (status === 409 || status === 500) {
    return 'Unknown. Repeat the request with the same <code>Idempotency-Key</code> to find out.';
  }
  if (status === 429 || status === 503) {
    return 'Nothing happened. Repeat the request after <code>Retry-After</code> seconds.';
  }
  return 'Nothing happened. Remove the reason before you repeat the request.';
}

function htmlOfMeaning(meaning: string): string {
  return meaning.replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}
