/**
 * Workers in the process of a test, which take workflows and the steps in Postgres of top-ups, and none that
 * call Stripe.
 */
import { pino } from 'pino';
import { NativeConnection, Worker } from '@temporalio/worker';
import { createTopUpActivities, type TopUpActivities } from '../../activities/top-ups.ts';
import { connectionOptions } from '../../src/temporal/client.ts';
import { installRuntime } from '../../src/temporal/runtime.ts';
import { workflowBundle } from '../../src/temporal/workflow-bundle.ts';
import type { TopUpHarness } from './top-up-harness.ts';

export type OwnWorkers = Awaited<ReturnType<typeof openOwnWorkers>>;

export async function openOwnWorkers({ config, database, stripe }: TopUpHarness) {
  installRuntime(pino({ level: 'silent' }));
  const connection = await NativeConnection.connect(connectionOptions(config.temporal));
  const { namespace, taskQueue } = config.temporal;
  const steps = createTopUpActivities({
    database,
    stripe,
    dashboardUrl: null,
    firstAskMs: 3_600_000,
    autoTopUpRetryMs: 1_000,
  });
  return {
    connection,
    steps,
    /** With `others` in place of some steps. */
    async create(others: Partial<TopUpActivities> = {}): Promise<Worker> {
      return Worker.create({
        connection,
        namespace,
        taskQueue,
        workflowBundle: await workflowBundle(),
        activities: { ...steps, ...others },
      });
    },
    close: () => connection.close(),
  };
}
