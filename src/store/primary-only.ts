/**
 * Connections to the primary alone. After a failover, the address of Postgres may lead to the old server for
 * a while, which has become a standby: it answers what it knew, and refuses writes. A connection to it would
 * stay open and be read from after the address leads to the new primary, so keys would be checked and
 * balances shown as they were.
 */
import type { DriverFactory } from 'slonik';

/** Postgres is a standby. Nothing was read from it. */
class StandbyError extends Error {
  override readonly name = 'StandbyError';
}

/** A driver that does not connect to a standby. */
export function toPrimary(createDriver: DriverFactory): DriverFactory {
  return async (options) => {
    const driver = await createDriver(options);
    return {
      createClient: async () => {
        const client = await driver.createClient();
        client.acquire();
        try {
          const { rows } = await client.query('select where pg_is_in_recovery()', []);
          if (rows.length > 0) throw new StandbyError('Postgres is a standby');
          await client.release();
        } catch (error) {
          await client.destroy().catch(() => {});
          throw error;
        }
        return client;
      },
    };
  };
}

/** No connection could be opened, because Postgres is a standby. */
export function isOfStandby(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof StandbyError;
}
