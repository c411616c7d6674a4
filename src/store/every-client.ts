/** A hook for every client of pg in this process, also those that libraries make. */
import { Client } from 'pg';

/** Calls `work` with each client from now on when it has begun to connect. Call it once for each `work`. */
export function onEveryConnect(work: (client: Client) => void): void {
  const connect: unknown = Reflect.get(Client.prototype, 'connect');
  Client.prototype.connect = function connectHooked(this: Client, ...args: unknown[]): unknown {
    const connected: unknown = Reflect.apply(connect as () => unknown, this, args);
    work(this);
    return connected;
  } as typeof Client.prototype.connect;
}
