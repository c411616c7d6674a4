/** The list of error codes, and a page for each: its meaning, its effect, and the endpoints that return it. */
import type { Middleware } from 'koa';
import { ERRORS, type ErrorCode } from '../../domain/errors.ts';
import type { Endpoint } from '../endpoint.ts';
import { noSuch } from '../look-ups.ts';
import { EFFECTS_OF_STATUSES, factsOf, isCode } from './error-facts.ts';
import { respondPage, type HtmlPage } from './html-pages.ts';

const LIST: HtmlPage = {
  title: 'Error codes',
  body:
    `<h1>Error codes</h1><p>${htmlOf(EFFECTS_OF_STATUSES)}</p><dl>` +
    Object.entries(ERRORS)
      .map(
        ([code, [status, meaning]]) =>
          `<dt id="${code}"><a href="/docs/errors/${code}"><code>${code}</code></a> ${status}</dt>` +
          `<dd>${htmlOf(meaning)}</dd>`,
      )
      .join('') +
    '</dl>',
};

export const errorsPage: Middleware = async (ctx) => respondPage(ctx, 200, LIST);

/** `/docs/errors/:code`. */
export function errorPage(endpoints: readonly Endpoint[]): Middleware {
  return async (ctx) => {
    const code = ctx.path.slice(ctx.path.lastIndexOf('/') + 1);
    if (!isCode(code)) throw noSuch('error code');
    respondPage(ctx, 200, pageOf(code, endpoints));
  };
}

function pageOf(code: ErrorCode, endpoints: readonly Endpoint[]): HtmlPage {
  const { status, type, meaning, effect, returnedBy } = factsOf(code, endpoints);
  const list = returnedBy.map((endpoint) => `<li><code>${endpoint}</code></li>`).join('');
  return {
    title: code,
    body:
      `<p class="brand"><a href="/docs/errors">Error codes</a></p><h1><code>${code}</code></h1>` +
      `<p>${htmlOf(meaning)}</p><dl>` +
      `<dt>Status</dt><dd>${status}</dd>` +
      `<dt>Type</dt><dd><code>${type}</code></dd>` +
      `<dt>Effect</dt><dd>${htmlOf(effect)}</dd>` +
      (list && `<dt>Returned by</dt><dd><ul>${list}</ul></dd>`) +
      '</dl>',
  };
}

function htmlOf(text: string): string {
  return text.replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}
