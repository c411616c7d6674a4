/**
 * A row that is locked from outside and holds every statement that needs it at a known point: it is sent and
 * waits. So a fault can be timed without guessing. All charges and credits need their consumer's row.
 */
import { Client } from 'pg';
import { uuidOf } from '../../src/domain/ids.ts';
import type { Answer } from './http.ts';
import { until } from './stack.ts';

export interface HeldRow {
  /**
   * Resolves when this many sessions wait for a lock in the database, or one of the requests has ended: on a busy
   * machine, it has waited for longer than it may.
   */
  waited(sessions: number, ...requests: readonly Promise<unknown>[]): Promise<void>;
  release(): Promise<void>;
}

const LATE = ['service_unavailable', 'idempotency_key_in_use'];

/**
 * Whether the request, or a charge of the batch, waited for a row for longer than it may, as on a busy machine, or for
 * such a one with its key. It is to be sent again.
 */
export function waitedTooLong({ body }: Pick<Answer, 'body'>): boolean {
  type Part = { readonly error?: { readonly code?: string } };
  const { results = [], ...whole } = body as Part & { readonly results?: readonly Part[] };
  return [whole, ...results].some(({ error }) => LATE.includes(error?.code ?? ''));
}

/** `consumerId` as on the wire. */
export function holdConsumer(databaseUrl: string, consumerId: string): Promise<HeldRow> {
  const statement = 'select from farebox.consumers where id = $1 for update';
  return hold(databaseUrl, statement, uuidOf('consumer', consumerId));
}

/** The row that direct top-ups lock for their ceilings. */
export function holdAccount(databaseUrl: string, consumerId: string): Promise<HeldRow> {
  const statement = 'select from farebox.accounts where consumer_id = $1 for update';
  return hold(databaseUrl, statement, uuidOf('consumer', consumerId));
}

/** `id` as in the database. The result of each attempt to send to the endpoint is recorded under this lock. */
export function holdEndpoint(databaseUrl: string, id: string): Promise<HeldRow> {
  return hold(databaseUrl, 'select from farebox.webhook_endpoints where id = $1 for update', id);
}

/** `id` as on the wire. Who revokes or rolls the key changes its row. */
export function holdSpendKey(databaseUrl: string, id: string): Promise<HeldRow> {
  const statement = 'select from farebox.spend_keys where id = $1 for update';
  return hold(databaseUrl, statement, uuidOf('key', id));
}

async function hold(
  databaseUrl: string,
  statement: string,
  id: string | undefined,
): Promise<HeldRow> {
  const holder = await connected(databaseUrl);
  await holder.query('begin');
  await holder.query(statement, [id]);
  // A transaction sees one state of pg_stat_activity, so the watcher runs outside it.
  const watcher = await connected(databaseUrl);
  return {
    waited: async (sessions, ...requests) => {
      let hasEnded = false;
      for (const request of requests) {
        const note = () => {
          hasEnded = true;
        };
        request.then(note, note);
      }
      await until(async () => {
        if (hasEnded) return true;
        const { rows } = await watcher.query<{ count: number }>(`
          select count(*)::int as count from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'
        `);
        return (rows[0]?.count ?? 0) >= sessions;
      });
    },
    release: async () => {
      // It may have died with its server, which releases the lock as well.
      await Promise.allSettled([holder.end(), watcher.end()]);
    },
  };
}

/** How many sessions of a program, such as `farebox migrate`, wait for a lock in the database of `client`. */
export async function countWaiting(client: Client, application: string): Promise<number> {
  // A transaction reads pg_stat_activity once, so what it has read is discarded.
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int from pg_stat_clear_snapshot(), pg_stat_activity
     where datname = current_database() and application_name = $1 and wait_event_type = 'Lock'`,
    [application],
  );
  return rows[0]?.count ?? 0;
}

async function connected(databaseUrl: string): Promise<Client> {
  const client = new Client({ connectionString: databaseUrl });
  client.on('error', () => {});
  await client.connect();
  return client;
}
