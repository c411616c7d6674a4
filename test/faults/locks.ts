/**
 * A consumer's row, locked from outside, which holds every charge and credit of it at a known point: the
 * statement is sent and waits. So a fault can be timed without guessing.
 */
import { Client } from 'pg';
import { uuidOf } from '../../src/domain/ids.ts';
import { until } from '../support/stack.ts';

export interface HeldConsumer {
  /** Resolves when this many sessions wait for a lock in the database. */
  waited(sessions: number): Promise<void>;
  release(): Promise<void>;
}

/** `consumerId` as on the wire. */
export async function holdConsumer(databaseUrl: string, consumerId: string): Promise<HeldConsumer> {
  const holder = await connected(databaseUrl);
  await holder.query('begin');
  await holder.query('select from farebox.consumers where id = $1 for update', [
    uuidOf('consumer', consumerId),
  ]);
  // A transaction sees one state of pg_stat_activity, so the watcher is outside of it.
  const watcher = await connected(databaseUrl);
  return {
    waited: async (sessions) => {
      await until(async () => {
        const { rows } = await watcher.query<{ count: number }>(`
          select count(*)::int as count from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'
        `);
        return (rows[0]?.count ?? 0) >= sessions;
      });
    },
    release: async () => {
      // It may have died with its server, which releases as well.
      await Promise.allSettled([holder.end(), watcher.end()]);
    },
  };
}

async function connected(databaseUrl: string): Promise<Client> {
  const client = new Client({ connectionString: databaseUrl });
  client.on('error', () => {});
  await client.connect();
  return client;
}
