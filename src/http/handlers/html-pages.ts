/** The few pages for people: what error codes mean, and where a consumer tops up. */
import type { Middleware } from 'koa';
import { ERRORS } from '../../domain/errors.ts';
import { respond } from '../respond.ts';

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem;' +
  'color-scheme:light dark}dt{font-weight:600;margin-top:1rem}code{font-size:.95em}' +
  'label{display:block;margin:1rem 0 .25rem}input{font:inherit;padding:.4rem;width:100%;' +
  'box-sizing:border-box}button{font:inherit;margin-top:1rem;padding:.5rem 1.2rem}';

const page = (title: string, body: string) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>` +
  `<meta name="viewport" content="width=device-width"><style>${STYLE}</style></head>` +
  `<body><h1>${title}</h1>${body}</body></html>`;

const CODES = page(
  'Error codes',
  '<p>2xx: durable. 4xx except 409, and 503: nothing happened. 409, 500 or a dropped connection: unknown; ' +
    'repeat the request with the same <code>Idempotency-Key</code> to find out.</p><dl>' +
    Object.entries(ERRORS)
      .map(([code, [status, meaning]]) => {
        const text = meaning.replace(/`([^`]+)`/g, '<code>$1</code>');
        return `<dt id="${code}"><code>${code}</code> ${status}</dt><dd>${text}</dd>`;
      })
      .join('') +
    '</dl>',
);

/** The key stays in the page: it goes to our own API, in a header, and is not kept. */
const TOP_UP = page(
  'Top up',
  '<p id="outcome" role="status"></p><form><label for="key">Consumer key</label>' +
    '<input id="key" type="password" autocomplete="off" required>' +
    '<label for="amount">Amount in dollars</label>' +
    '<input id="amount" type="number" min="5" max="999999.99" step="0.01" value="10" required>' +
    '<button>Go to checkout</button></form><script src="/top-up.js"></script>',
);

const TOP_UP_SCRIPT = `
const outcome = document.getElementById('outcome');
const asked = new URLSearchParams(location.search);
const amount = document.getElementById('amount');
if (asked.has('amount')) amount.value = asked.get('amount');
const said = asked.get('result');
if (said === 'paid') outcome.textContent = 'Thank you. Your balance is credited within moments.';
if (said === 'canceled') outcome.textContent = 'Nothing was paid.';
document.querySelector('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const answer = await fetch('/v1/checkout', {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Authorization: 'Bearer ' + document.getElementById('key').value,
    },
    body: JSON.stringify({ amount: amount.value }),
  });
  const body = await answer.json();
  if (body.sessionUrl) location.href = body.sessionUrl;
  else outcome.textContent = body.error ? body.error.message : 'Not ready yet; try again.';
});
`;

/** Nothing from elsewhere runs or is framed: a key is typed into this page. */
const CSP =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; " +
  "form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

const serve =
  (type: string, body: string): Middleware =>
  async (ctx) => {
    respond(ctx, 200, `${type}; charset=utf-8`, body, { 'Content-Security-Policy': CSP });
  };

export const errorsPage = serve('text/html', CODES);
export const topUpPage = serve('text/html', TOP_UP);
export const topUpScript = serve('text/javascript', TOP_UP_SCRIPT);
