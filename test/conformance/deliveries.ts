/** A webhook that keeps what it is sent. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Delivery } from './target.ts';

/** `port` 0 for any. */
export async function listenForDeliveries(port: number) {
  const deliveries: Delivery[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      deliveries.push({ body, signature: String(request.headers['stripe-signature'] ?? '') });
      return response.writeHead(200).end();
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks/stripe`;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { deliveries, url, close };
}
