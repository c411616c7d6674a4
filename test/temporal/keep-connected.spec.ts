/**
 * Connections to Temporal that are forgotten on the way, as a firewall forgets them: both ends believe that
 * they are open.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { NativeConnection } from '@temporalio/worker';
import { pino } from 'pino';
import { readTemporalConfig } from '../../src/config.ts';
import { asMicros } from '../../src/domain/money.ts';
import { createTemporalClient, type TemporalClient } from '../../src/temporal/client.ts';
import { keepConnected } from '../../src/temporal/keep-connected.ts';
import { installRuntime } from '../../src/temporal/runtime.ts';
import { startCheckout, topUpWorkflowId } from '../../src/temporal/start-top-up.ts';
import { openTunnel, type Tunnel } from '../../src/temporal/tunnel.ts';
import { createTestNamespace, until } from '../support/stack.ts';
import { startFaultyLine, type FaultyLine } from '../support/faulty-line.ts';

describe('connections to Temporal that were forgotten', () => {
  let line: FaultyLine;
  let temporal: TemporalClient;
  let tunnel: Tunnel;
  let connection: NativeConnection;

  before(async () => {
    const { hostname, port } = new URL(`tcp://${process.env['TEST_TEMPORAL_ADDRESS']}`);
    line = await startFaultyLine({ host: hostname, port: Number(port) });
    const config = readTemporalConfig({ TEMPORAL_ADDRESS: `127.0.0.1:${line.port}` });
    temporal = createTemporalClient(config);
    tunnel = await openTunnel(config.address);
    installRuntime(pino({ level: 'silent' }));
    connection = await NativeConnection.connect({ address: tunnel.address });
  });
  after(async () => {
    await connection?.close();
    await temporal?.close();
    await tunnel?.close();
    await line?.stop();
  });

  it('are replaced, the client’s and the worker’s', async () => {
    const log = new PassThrough();
    const stopping = new AbortController();
    const native = { connection, tunnel };
    const keeping = keepConnected(temporal, pino(log), stopping.signal, native);
    await connection.workflowService.getSystemInfo({});
    await temporal.client.workflowService.getSystemInfo({});
    line.forget();
    const [written] = (await once(log, 'data')) as [Buffer];
    assert.match(written.toString(), /continuing on new connections/);
    await connection.workflowService.getSystemInfo({});
    await temporal.client.workflowService.getSystemInfo({});
    stopping.abort();
    await keeping;
  });

  it('are kept while Temporal itself is silent', async () => {
    const { client } = temporal;
    line.damage({ kind: 'silent' });
    assert.equal(await temporal.renew(), false);
    line.mend();
    assert.equal(temporal.client, client);
    await client.workflowService.getSystemInfo({});
  });

  it('take the calls with them that still wait for an answer', async () => {
    const own = createTemporalClient(
      readTemporalConfig({
        TEMPORAL_ADDRESS: `127.0.0.1:${line.port}`,
        TEMPORAL_NAMESPACE: await createTestNamespace(),
      }),
    );
    try {
      const topUp = {
        id: randomUUID(),
        consumerId: randomUUID(),
        method: 'checkout',
        automatic: false,
        status: 'pending',
        amountMicros: asMicros(5_000_000),
      } as const;
      // No worker answers it.
      const answer = startCheckout(own, topUp, { timeoutMs: 60_000 });
      const run = () => own.client.workflow.getHandle(topUpWorkflowId(own, topUp.id));
      await until(() =>
        run()
          .describe()
          .then(Boolean, () => false),
      );
      assert.equal(await own.renew(), true);
      line.damage({ kind: 'cut' });
      line.mend();
      await run().terminate();
      assert.deepEqual(await answer, { kind: 'closed' });
    } finally {
      await own.close();
    }
  });
});
