/** Doctor's checks of Temporal: search attributes, schedules, workflows that cannot continue, builds without workers. */
import { readScheduleConfig } from '../config.ts';
import type { Environment } from '../read-setting.ts';
import { findingsOf, type Finding } from '../store/doctor/findings.ts';
import { abandonedOf, describeDeployment, offenderOf } from '../temporal/builds.ts';
import { listFailingWorkflows } from '../temporal/failing-workflows.ts';
import { listScheduleFaults, schedulesOf } from '../temporal/schedules.ts';
import { listMissingSearchAttributes } from '../temporal/search-attributes.ts';
import { withTemporal } from './temporal-command.ts';

const ATTRIBUTES_CHECK = 'Temporal has the search attributes';
const SCHEDULES_CHECK = 'Temporal has the schedules as defined, and none is paused';
const WORKFLOWS_CHECK = 'no workflow fails in its code';
const BUILDS_CHECK = 'no workflow waits for a build that no worker runs';
/** In the order in which they run. */
export const TEMPORAL_CHECKS = [
  ATTRIBUTES_CHECK,
  SCHEDULES_CHECK,
  WORKFLOWS_CHECK,
  BUILDS_CHECK,
] as const;

export async function examineTemporal(env: Environment): Promise<Finding[]> {
  return withTemporal(env, async (temporal) => {
    const { connection, options } = temporal.client;
    const missing = await listMissingSearchAttributes(connection, options.namespace);
    // Workers recreate a missing schedule within a minute and update others when they start. They leave pauses alone.
    const faults = await listScheduleFaults(temporal, schedulesOf(readScheduleConfig(env)));
    const failing = await listFailingWorkflows(temporal);
    const abandoned = abandonedOf(await describeDeployment(temporal));
    return [
      ...findingsOf(
        'temporal',
        ATTRIBUTES_CHECK,
        missing.map((name) => ({
          subject: `search attribute ${name}`,
          detail: 'is not registered: run farebox migrate',
        })),
      ),
      ...findingsOf(
        'temporal',
        SCHEDULES_CHECK,
        faults.map(({ id, reason }) => ({ subject: id, detail: reason })),
      ),
      ...findingsOf(
        'temporal',
        WORKFLOWS_CHECK,
        failing.map((subject) => ({
          subject,
          detail: 'cannot continue; its history shows the error',
        })),
      ),
      ...findingsOf('temporal', BUILDS_CHECK, abandoned.map(offenderOf)),
    ];
  });
}
