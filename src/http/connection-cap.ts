/**
 * A cap on the connections of one address, so that no client can fill a process: every connection may hold a body of
 * half a megabyte for as long as a request may take.
 */
import type { Server } from 'node:http';
import { networkOf } from './client-network.ts';

/** Closes the connections of an address beyond `max`, unanswered. 0 for no cap, which is right behind a proxy. */
export function capConnections(server: Server, max: number): void {
  if (max === 0) return;
  const open = new Map<string, number>();
  server.on('connection', (socket) => {
    const address = networkOf(socket.remoteAddress);
    const count = open.get(address) ?? 0;
    if (count >= max) return void socket.destroy();
    open.set(address, count + 1);
    socket.once('close', () => {
      const left = (open.get(address) ?? 1) - 1;
      if (left === 0) open.delete(address);
      else open.set(address, left);
    });
  });
}
