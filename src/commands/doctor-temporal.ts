/** Doctor's checks of Temporal: schedules, workflows that cannot continue, and builds without workers. */
import { readScheduleConfig, readTemporalConfig } from '../config.ts';
import type { Environment } from '../read-setting.ts';
import { firstOf, type Finding } from '../store/audit/findings.ts';
import { abandonedOf, describeDeployment, offenderOf } from '../temporal/builds.ts';
import { CONNECT_TIMEOUT_MS, createTemporalClient } from '../temporal/client.ts';
import { listFailingWorkflows } from '../temporal/failing-workflows.ts';
import { listMissingSchedules, schedulesOf } from '../temporal/schedules.ts';
import { CommandError } from './database-command.ts';

const SCHEDULES_CHECK = 'Temporal has the schedules';
const WORKFLOWS_CHECK = 'no workflow fails in its code';
const BUILDS_CHECK = 'no workflow waits for a build that no worker runs';
/** In the order in which they run. */
export const TEMPORAL_CHECKS = [SCHEDULES_CHECK, WORKFLOWS_CHECK, BUILDS_CHECK] as const;

export async function auditTemporal(env: Environment): Promise<Finding[]> {
  const temporal = createTemporalClient(readTemporalConfig(env));
  try {
    if (!(await temporal.isUp(CONNECT_TIMEOUT_MS)))
      throw new CommandError('Temporal did not respond.');
    // Workers recreate a missing schedule within a minute.
    const missing = await listMissingSchedules(temporal, schedulesOf(readScheduleConfig(env)));
    const failing = await listFailingWorkflows(temporal);
    const abandoned = abandonedOf(await describeDeployment(temporal));
    return [
      ...findingsOf(SCHEDULES_CHECK, missing, 'not found'),
      ...findingsOf(WORKFLOWS_CHECK, failing, 'cannot continue; its history shows the error'),
      ...firstOf(abandoned.map(offenderOf)).map((each) => ({
        part: 'temporal' as const,
        check: BUILDS_CHECK,
        ...each,
      })),
    ];
  } finally {
    await temporal.close();
  }
}

function findingsOf(check: string, subjects: readonly string[], detail: string): Finding[] {
  const offenders = subjects.map((subject) => ({ subject, detail }));
  return firstOf(offenders).map((each) => ({ part: 'temporal', check, ...each }));
}
