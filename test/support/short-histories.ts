/** A Temporal server that makes workflows continue as new after few events, as others do after thousands. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { startChild } from '../../src/embedded/child.ts';
import { isPortOpen } from '../../src/embedded/ports.ts';
import { LEAN_TEMPORAL } from './lean-temporal.ts';
import { choosePort } from './ports.ts';
import { ensureSearchAttributes } from '../../src/temporal/search-attributes.ts';
import { PATIENTLY, until, type Environment } from './stack.ts';

/** Temporal's own limit is 4,096 events. */
export const HISTORY_EVENTS_MAX = 60;

export interface ShortHistories {
  /** For a stack on this server. */
  readonly env: Environment;
  stop(): Promise<void>;
}

export async function startTemporalWithShortHistories(): Promise<ShortHistories> {
  const folder = await mkdtemp(join(tmpdir(), 'farebox-test-'));
  const port = await choosePort();
  const flags = [
    '--headless',
    `--port=${port}`,
    ...Object.entries({
      ...LEAN_TEMPORAL.settings,
      'limit.historyCount.suggestContinueAsNew': HISTORY_EVENTS_MAX,
    }).map(([name, value]) => `--dynamic-config-value=${name}=${value}`),
  ];
  const server = await startChild({
    name: 'Temporal',
    command: [process.env['TEST_TEMPORAL_PROGRAM'] ?? '', 'server', 'start-dev', ...flags],
    env: { PATH: process.env['PATH'], HOME: folder, ...LEAN_TEMPORAL.ownEnv },
    logFile: join(folder, 'temporal.log'),
    ready: () => isPortOpen(port),
    ...PATIENTLY,
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
  return {
    env: { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace },
    stop: async () => {
      await server.stop();
      await rm(folder, { recursive: true });
    },
  };
}
