/**
 * A connection that breaks fails its query, and pg emits an `error` event too. Without a listener that event ends the
 * process. Slonik has none at two moments: when it looks up the types of Postgres, on a connection of its
 * own, each time a pool is created; and from 50 ms after it began to close a connection that Postgres, or a
 * firewall, does not let end.
 */
import type { DriverFactory } from 'slonik';
import { onEveryConnect } from './every-client.ts';

/** A driver whose clients have a listener as long as they exist. */
export function withListener(createDriver: DriverFactory): DriverFactory {
  return async (options) => {
    const driver = await createDriver(options);
    return {
      createClient: async () => {
        const client = await driver.createClient();
        client.on('error', () => {});
        return client;
      },
    };
  };
}

/** From now on, every client of this process has a listener. Call it once. */
export function listenToClients(): void {
  // A socket reports its errors later than it was asked to connect.
  onEveryConnect((client) => void client.on('error', () => {}));
}
