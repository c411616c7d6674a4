/**
 * A connection that breaks fails its query, and pg emits an `error` event too. Without a listener that event ends the
 * process. Slonik has none at two moments: when it looks up the types of Postgres, on a connection of its
 * own, each time a pool is created; and from 50 ms after it began to close a connection that Postgres, or a
 * firewall, does not let end.
 */
import { Client } from 'pg';
import type { DriverFactory } from 'slonik';

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
  const connect: unknown = Reflect.get(Client.prototype, 'connect');
  Client.prototype.connect = function connectHeard(this: Client, ...args: unknown[]): unknown {
    this.on('error', () => {});
    return Reflect.apply(connect as () => unknown, this, args);
  } as typeof Client.prototype.connect;
}
