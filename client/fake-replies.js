/** The forms of what a FakeFarebox answers. */
import { checkPage } from './fake-checks.js';

const PAGE = 50;

export function done(body, { status = 200, replayed = false } = {}) {
  return { status, body, replayed };
}

/** The cursor is how many items came before. */
export async function listOf(name, items, query, view, others = {}) {
  checkPage(query);
  const from = Number(query.get('cursor') ?? 0);
  const end = from + Number(query.get('limit') ?? PAGE);
  const hasMore = end < items.length;
  const page = await Promise.all(items.slice(from, end).map(view));
  return done({ ...others, [name]: page, hasMore, nextCursor: hasMore ? String(end) : null });
}
