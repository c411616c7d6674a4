/**
 * A connection that breaks fails its query, and pg emits an `error` event too. Without a listener that event ends the
 * process. Slonik looks up the types of Postgres on a connection of its own that has none, each time a pool is created,
 * so a reset at that moment would end a process that could simply try again.
 */
import { Client } from 'pg';

/** From now on, every client of this process has a listener. Call it once. */
export function listenToClients(): void {
  const connect: unknown = Reflect.get(Client.prototype, 'connect');
  Client.prototype.connect = function connectHeard(this: Client, ...args: unknown[]): unknown {
    this.on('error', () => {});
    return Reflect.apply(connect as () => unknown, this, args);
  } as typeof Client.prototype.connect;
}
