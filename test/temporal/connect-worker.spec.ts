/** The connection of a worker to servers that do and do not mind by which address they are reached. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { readTemporalConfig } from '../../src/config.ts';
import { connectWorker } from '../../src/temporal/connect-worker.ts';
import { installRuntime } from '../../src/temporal/runtime.ts';

describe('the connection of a worker', () => {
  before(() => installRuntime(pino({ level: 'silent' })));

  it('goes through a tunnel', async () => {
    assert.equal(await isTunneled(process.env['TEST_TEMPORAL_ADDRESS'] ?? ''), true);
  });

  for (const status of [404, 503]) {
    it(`goes without, behind a proxy that knows only its own name (${status})`, async () => {
      const { address, proxy } = await startProxy(status);
      assert.equal(await isTunneled(address), false);
      proxy.close();
    });
  }
});

async function isTunneled(address: string): Promise<boolean> {
  const { connection, tunnel } = await connectWorker(
    readTemporalConfig({ TEMPORAL_ADDRESS: address }),
  );
  await connection.close();
  await tunnel?.close();
  return tunnel !== undefined;
}

/** It answers as Temporal, with empty messages, to those who ask for its address. */
async function startProxy(status: number): Promise<{ address: string; proxy: Http2Server }> {
  const proxy = createServer();
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  proxy.on('stream', (stream, headers) => {
    if (headers[':authority'] !== address) {
      stream.respond({ ':status': status }, { endStream: true });
      return;
    }
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc' },
      { waitForTrailers: true },
    );
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(Buffer.alloc(5));
  });
  return { address, proxy };
}
