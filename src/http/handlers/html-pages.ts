/** The frame of the few pages outside the console. */
import type { Middleware } from 'koa';
import { respond } from '../respond.ts';

/** The first line of a page's card. */
export const BRAND = '<p class="brand">Farebox</p>';

const STYLE = `:root {
  color-scheme: light dark;
  --text: light-dark(#1a1b1e, #dee2e6); --quiet: light-dark(#5c636a, #a6adb4);
  --ground: light-dark(#f6f7f9, #141517); --card: light-dark(#fff, #1f2023);
  --line: light-dark(#d5d9de, #3d4045); --accent: #4c51bf; --accent-text: #fff;
}
* { box-sizing: border-box; }
body { margin: 0; padding: 2rem 1rem; background: var(--ground); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, 'Segoe UI', sans-serif; overflow-wrap: anywhere; }
main { max-width: 44rem; margin: 0 auto; }
main.card { max-width: 26rem; margin-top: 8vh; padding: 2rem 1.5rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 12px; }
h1 { margin: 0 0 .5rem; font-size: 1.5rem; line-height: 1.25; }
p { margin: 0 0 1rem; }
dt { margin-top: 1rem; font-weight: 600; }
dd { margin: 0; }
code { font-size: .95em; }
.brand { color: var(--quiet); font-size: .875rem; font-weight: 600; letter-spacing: .02em; }
.quiet { color: var(--quiet); font-size: .875rem; margin: 1rem 0 0; }
.problem { padding: .6rem .75rem; border: 1px solid #c92a2a; border-radius: 8px; }
label { display: block; margin: 1.5rem 0 .375rem; font-size: .875rem; font-weight: 600; }
.row { display: flex; gap: .5rem; margin-bottom: 1rem; }
.row input { flex: 1; min-width: 0; }
input, button, a.button { font: inherit; padding: .625rem .875rem; border-radius: 8px; }
input { width: 100%; color: inherit; background: var(--card); border: 1px solid var(--line); }
button, a.button { display: block; cursor: pointer; font-weight: 600; text-align: center;
  text-decoration: none; color: var(--text); background: var(--card); border: 1px solid var(--line); }
.main { width: 100%; color: var(--accent-text) !important; background: var(--accent) !important;
  border-color: var(--accent) !important; }
.amounts { display: grid; grid-template-columns: repeat(3, 1fr); gap: .5rem; margin-top: .5rem; }
.mail { margin: 1.5rem 0; padding: 1rem 1.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 12px; }
.mail h2 { margin: 0; font-size: 1.1rem; }
.mail pre { font: inherit; white-space: pre-wrap; margin: 1rem 0 0; }
:focus-visible { outline: 3px solid light-dark(#4c51bf, #a5b4fc); outline-offset: 2px; }
a { color: light-dark(#4338ca, #a5b4fc); }
`;

/** No scripts, no framing, and forms only to this server. */
const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'Referrer-Policy': 'no-referrer',
};

export interface HtmlPage {
  readonly title: string;
  /** HTML; text from elsewhere must be escaped. */
  readonly body: string;
  /** A narrow page with one thing to do. */
  readonly isCard?: true;
  /** Loads `url`, or the page itself, after `seconds`. */
  readonly refresh?: { readonly seconds: number; readonly url?: string };
}

export function htmlOf({ title, body, isCard, refresh }: HtmlPage): string {
  const url = refresh?.url === undefined ? '' : `;url=${escapeHtml(refresh.url)}`;
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>` +
    '<meta name="viewport" content="width=device-width,initial-scale=1">' +
    (refresh ? `<meta http-equiv="refresh" content="${refresh.seconds}${url}">` : '') +
    `<link rel="stylesheet" href="/pages.css"></head>` +
    `<body><main${isCard ? ' class="card"' : ''}>${body}</main></body></html>`
  );
}

/** The pauses add up to ten minutes. */
const LOOKS_MAX = 14;

/**
 * How a page that waits for a payment looks again: each pause is half as long again as the last one, and
 * after ten minutes there is only the link. A bank debit takes days, and nobody can read a page that is
 * replaced every second. `looks` is the parameter of that name, and `query` all others.
 */
export function lookingAgain(
  looks: unknown,
  query: Readonly<Record<string, string>>,
): Pick<HtmlPage, 'refresh'> & { readonly link: string } {
  const count = typeof looks === 'string' && /^\d{1,2}$/.test(looks) ? Number(looks) : 0;
  const urlAfter = (next: number) =>
    `?${new URLSearchParams({ ...query, looks: String(next) }).toString()}`;
  const next = Math.min(count + 1, LOOKS_MAX);
  const link = `<p><a class="button" href="${escapeHtml(urlAfter(next))}">Check again</a></p>`;
  if (count >= LOOKS_MAX) return { link };
  return { refresh: { seconds: Math.round(1.5 ** count), url: urlAfter(next) }, link };
}

export function respondPage(
  ctx: Parameters<typeof respond>[0],
  status: number,
  page: HtmlPage,
  headers: Readonly<Record<string, string | string[]>> = {},
): void {
  respond(ctx, status, 'text/html; charset=utf-8', htmlOf(page), {
    ...PAGE_HEADERS,
    'Cache-Control': 'no-store',
    ...headers,
  });
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

export const pagesStyle: Middleware = async (ctx) => {
  respond(ctx, 200, 'text/css; charset=utf-8', STYLE, { 'Cache-Control': 'public, max-age=300' });
};
