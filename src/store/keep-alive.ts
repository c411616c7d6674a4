/**
 * TCP's own probes of a connection that is silent: of a PostgreSQL whose machine or network is gone, a statement
 * without a time limit would wait for an answer forever. SESSION_OPTIONS asks the server for the same.
 */
import type { Socket } from 'node:net';
import type { Client } from 'pg';
import { onEveryConnect } from './every-client.ts';

/** Firewalls forget connections that are silent for minutes. */
const IDLE_MS = 10_000;

/** From now on, for every client of this process. Call it once. */
export function keepConnectionsAlive(): void {
  onEveryConnect(keepAlive);
}

function keepAlive(client: Client): void {
  // With TLS, pg wraps this socket later.
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  stream.once('connect', () => stream.setKeepAlive(true, IDLE_MS));
}
