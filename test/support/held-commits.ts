/** Transactions that wait at their COMMIT, for tests of answers that come late or never. */
import type { Client } from 'pg';

export interface HeldCommits {
  /** Lets those that wait commit, and later ones without a wait. */
  release(): Promise<void>;
  /** Removes what made them wait. */
  end(): Promise<void>;
}

/**
 * From now on, a transaction that makes this change waits when it commits, for a minute at most: longer than the lock
 * timeout of its session. `event` is `insert` or `update`, `table` such as `farebox.approvals`. Only one table can be
 * held at a time.
 */
export async function holdCommits(sql: Client, event: string, table: string): Promise<HeldCommits> {
  await sql.query(`
    create or replace function farebox.test_wait() returns trigger language plpgsql as $$
    begin
      perform set_config('lock_timeout', '60s', true);
      perform pg_advisory_xact_lock(1);
      return null;
    end $$;
    create constraint trigger test_wait after ${event} on ${table}
      deferrable initially deferred for each row execute function farebox.test_wait()
  `);
  await sql.query('select pg_advisory_lock(1)');
  return {
    release: async () => {
      await sql.query('select pg_advisory_unlock(1)');
    },
    end: async () => {
      await sql.query(`drop trigger test_wait on ${table}`);
    },
  };
}
