/**
 * The limit for opening a connection, as pg's own `connectionTimeoutMillis`, but without the time that this process
 * stood still.
 */
import type { Duplex } from 'node:stream';
import type { Client } from 'pg';
import { giveUpAfter } from '../give-up-after.ts';
import { onEveryConnect } from './every-client.ts';

/** What pg keeps for its own limit. */
interface Connecting {
  readonly _connectionTimeoutMillis: number;
  readonly connectionTimeoutHandle: NodeJS.Timeout | undefined;
  readonly connection: { readonly stream: Duplex };
}

/** From now on, for every client of this process. Call it once. */
export function connectPatiently(): void {
  onEveryConnect(replaceLimit);
}

function replaceLimit(client: Client): void {
  const {
    _connectionTimeoutMillis: limitMs,
    connectionTimeoutHandle,
    connection,
  } = client as unknown as Connecting;
  if (connectionTimeoutHandle === undefined) return;
  clearTimeout(connectionTimeoutHandle);
  const stopWaiting = giveUpAfter(limitMs, () => {
    // As pg does: the errors of a socket that is being closed are not reported.
    Reflect.set(connection, '_ending', true);
    connection.stream.destroy(new Error('timeout expired'));
  });
  client.once('connect', stopWaiting).once('end', stopWaiting);
}
