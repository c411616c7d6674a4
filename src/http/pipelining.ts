/**
 * Limits how many requests a connection may send before earlier ones are answered. Hundreds fit into one
 * packet, and Node takes all of them in one turn of the event loop, in which nobody else is served. Common
 * clients send none.
 */
import { IncomingMessage, type ServerOptions, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const WAITING_MAX = 8;

const waiting = new WeakMap<Socket, number>();

const isFull = (socket: Socket): boolean => (waiting.get(socket) ?? 0) >= WAITING_MAX;

/** Counts a request that waits behind another one of its connection. */
export function countWaiting({ socket }: IncomingMessage, response: ServerResponse): void {
  // Node hands the connection to a response as soon as no earlier one has it.
  if (response.socket) return;
  waiting.set(socket, (waiting.get(socket) ?? 0) + 1);
  response.once('close', () => waiting.set(socket, (waiting.get(socket) ?? 1) - 1));
}

/**
 * A request too many is treated as one that asks for another protocol, because only there Node stops reading
 * what else a packet has. Nobody serves that protocol, so Node closes the connection.
 *
 * A CONNECT is treated as an ordinary request. Otherwise Node would detach its connection from the server: an
 * error of the connection would end the process, and the server would wait for it when it closes.
 */
class Request extends IncomingMessage {
  /** Set by the constructor of Node's class already, so it has no initial value here. */
  declare private asksForUpgrade: boolean;

  get upgrade(): boolean {
    return this.asksForUpgrade && (this.method !== 'CONNECT' || isFull(this.socket));
  }

  set upgrade(isAsked: boolean | null) {
    this.asksForUpgrade = isAsked === true || (isAsked === false && isFull(this.socket));
  }
}

export const PIPELINING: Pick<ServerOptions, 'IncomingMessage' | 'shouldUpgradeCallback'> = {
  IncomingMessage: Request,
  shouldUpgradeCallback: ({ socket }) => isFull(socket),
};
