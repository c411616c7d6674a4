/**
 * A Hono app with a route that is priced by the length of its response, for anything that serves `fetch`: Workers, Bun,
 * Deno, Node. Settings: FAREBOX_URL, FAREBOX_SECRET_KEY. A Worker needs the flag in wrangler.json to read them.
 */
import { Farebox, usd } from '@farebox/client';
import { paidRoute } from '@farebox/client/hono';
import { Hono } from 'hono';

const WORDS_MAX = 1_000;
const perWord = usd('0.10').per(1_000);

const farebox = new Farebox();
const app = new Hono();

/** Holds the price of a thousand words, and captures that of the words in the response. */
const paid = paidRoute(farebox, {
  tool: 'lorem',
  max: perWord.times(WORDS_MAX).round('up'),
  settle: ({ res }) => perWord.times(Number(res.headers.get('x-words'))).round('up'),
});

app.get('/lorem', paid, (context) => {
  const words = Number(context.req.query('words') ?? 100);
  if (!Number.isInteger(words) || words < 1 || words > WORDS_MAX) {
    return context.json({ error: `words must be an integer from 1 to ${WORDS_MAX}` }, 400);
  }
  return context.text('lorem '.repeat(words).trim(), 200, { 'x-words': String(words) });
});

export default app;
