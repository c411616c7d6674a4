/**
 * Counts what anybody may send to the endpoints of sign-in. The requests of one client to one endpoint are counted one
 * after the other, on connections that read no sessions: a client that sends many keeps nobody else waiting.
 */
import { LRUCache } from 'lru-cache';
import type { Pool } from 'pg';
import {
  countClientRequest,
  type ClientLimit,
  type CountedRequest,
} from '../store/console/client-limits.ts';

/**
 * How long PostgreSQL is not asked about a client that was refused. Each count waits for the disk. Short, so that
 * the seconds in a refusal stay right.
 */
const REFUSED_MS = 1_000;
/** Beyond it, the oldest is forgotten. */
const REMEMBERED_MAX = 10_000;

export type CountRequest = (key: string, limit: ClientLimit) => Promise<CountedRequest>;

export function clientCounts(pool: Pick<Pool, 'query'>): CountRequest {
  const refused = new LRUCache<string, CountedRequest>({ max: REMEMBERED_MAX, ttl: REFUSED_MS });
  const last = new Map<string, Promise<CountedRequest>>();
  async function count(key: string, limit: ClientLimit): Promise<CountedRequest> {
    const known = refused.get(key);
    if (known) return known;
    const counted = await countClientRequest(pool, key, limit);
    if (!counted.allowed) refused.set(key, counted);
    return counted;
  }
  return async (key, limit) => {
    // A count that fails fails those behind it too: each of them would wait for PostgreSQL just as long.
    const own = (last.get(key) ?? Promise.resolve()).then(() => count(key, limit));
    last.set(key, own);
    try {
      return await own;
    } finally {
      if (last.get(key) === own) last.delete(key);
    }
  };
}
