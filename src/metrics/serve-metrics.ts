/**
 * `/metrics` for Prometheus, `/healthz` for health checks and a worker's `/readyz`, on a port that clients never
 * reach.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { Registry } from '@prometheus-io/client';
import type { Logger } from 'pino';

export interface MetricsServer {
  close(): Promise<void>;
}

export async function serveMetrics(
  { host, port, log }: { readonly host: string; readonly port: number; readonly log: Logger },
  registry: Registry,
  isReady?: () => Promise<boolean>,
): Promise<MetricsServer> {
  const server = createServer(({ method, url }, response) => {
    const isRead = method === 'GET' || method === 'HEAD';
    if (isRead && url === '/healthz') {
      response.end('ok\n');
    } else if (isRead && url === '/readyz' && isReady) {
      void isReady().then((ready) =>
        response.writeHead(ready ? 200 : 503).end(ready ? 'ready\n' : 'not ready\n'),
      );
    } else if (isRead && url === '/metrics') {
      void answer(registry, response, log);
    } else {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, resolve);
  });
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(registry: Registry, response: ServerResponse, log: Logger): Promise<void> {
  try {
    const text = await registry.metrics();
    response.setHeader('Content-Type', registry.contentType).end(text);
  } catch (error) {
    log.warn({ err: error }, 'metrics could not be collected');
    response.writeHead(500).end();
  }
}
