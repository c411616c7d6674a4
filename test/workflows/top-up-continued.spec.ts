/** A top-up outlives any length of history: a run goes on as a new one, and loses nothing. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { startChild, type Child } from '../../src/embedded/child.ts';
import { choosePort, isPortOpen } from '../../src/embedded/ports.ts';
import { ensureSearchAttributes } from '../../src/temporal/search-attributes.ts';
import { until, type Server } from '../support/stack.ts';
import { openDesk, type TopUpDesk } from './top-up-desk.ts';

/** Temporal's own limit is 4,096 events. */
const HISTORY_EVENTS_MAX = 60;

describe('a top-up with a long history', () => {
  let folder: string;
  let server: Child;
  let desk: TopUpDesk;
  let worker: Server;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-test-'));
    const port = await choosePort();
    const flags = [
      '--headless',
      `--port=${port}`,
      `--dynamic-config-value=limit.historyCount.suggestContinueAsNew=${HISTORY_EVENTS_MAX}`,
    ];
    server = await startChild({
      name: 'Temporal',
      command: [process.env['TEST_TEMPORAL_PROGRAM'] ?? '', 'server', 'start-dev', ...flags],
      env: { PATH: process.env['PATH'], HOME: folder },
      logFile: join(folder, 'temporal.log'),
      ready: () => isPortOpen(port),
    });
    const address = `127.0.0.1:${port}`;
    const connection = await until(() => Connection.connect({ address }).catch(() => undefined));
    const namespace = 'default';
    await until(() =>
      connection.workflowService.describeNamespace({ namespace }).then(
        () => true,
        () => false,
      ),
    );
    await ensureSearchAttributes(connection, namespace);
    await ensureSearchAttributes(connection, namespace); // as `farebox migrate` may at any time
    await connection.close();
    desk = await openDesk({
      FIRST_ASK_MS: '3600000',
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
    });
    worker = await desk.startWorker();
  });

  after(async () => {
    await worker?.stop();
    await desk?.close();
    await server?.stop();
    await rm(folder, { recursive: true });
  });

  it('is credited when the payment is reported just as its run goes on as a new one', async () => {
    const consumer = await desk.newConsumer();
    const topUp = await desk.checkout(consumer, 25);
    const handle = desk.workflow(topUp.id);
    const first = (await handle.describe()).runId;
    while (((await handle.fetchHistory()).events?.length ?? 0) < HISTORY_EVENTS_MAX) {
      await handle.executeUpdate('retry');
    }
    await desk.pay(topUp.sessionUrl);
    await desk.statusBecomes(topUp, 'completed');
    assert.equal((await handle.result()).status, 'completed');
    assert.notEqual((await handle.describe()).runId, first);
    assert.equal((await desk.books(consumer)).credited, 25_000_000);
  });
});
