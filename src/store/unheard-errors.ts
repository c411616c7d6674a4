/**
 * A connection that breaks fails its query, and pg emits an `error` event too. Without a listener that event ends the
 * process. Slonik looks up the types of Postgres on a connection of its own that has none, each time a pool is created,
 * so a reset at that moment would end a process that could simply try again.
 */
import { Client } from 'pg';

const { connect } = Client.prototype;

/** From now on, every client of this process has a listener. */
Client.prototype.connect = function connectHeard(this: Client, ...args: unknown[]) {
  this.on('error', () => {});
  return Reflect.apply(connect, this, args);
} as typeof connect;
