/** `farebox builds`: the builds of workflow code that Temporal knows, and where their runs continue. */
import type { Command } from 'commander';
import { environmentOf } from '../embedded/environment.ts';
import {
  abandonedOf,
  describeDeployment,
  makeCurrent,
  takeOver,
  UNVERSIONED,
  type Build,
  type Deployment,
} from '../temporal/builds.ts';
import type { TemporalClient } from '../temporal/client.ts';
import { dataDirOption } from './data-dir-option.ts';
import { CommandError } from './database-command.ts';
import { columns } from './output.ts';
import { withTemporal } from './temporal-command.ts';

const UNVERSIONED_NAME = 'unversioned';

interface BuildsOptions {
  readonly makeCurrent?: string;
  readonly takeOver?: string;
  readonly dataDir: string;
}

export function register(command: Command): void {
  command
    .option('--make-current <build>', 'start new workflows on this build')
    .option('--take-over <build>', 'continue the workflows pinned to this build on the current one')
    .addOption(dataDirOption())
    .action(async ({ dataDir, ...options }: BuildsOptions) => {
      await withTemporal(await environmentOf(dataDir), async (temporal) => {
        await change(temporal, options);
        process.stdout.write(report(await describeDeployment(temporal)));
      });
    });
}

async function change(
  temporal: TemporalClient,
  { makeCurrent: wanted, takeOver: left }: Omit<BuildsOptions, 'dataDir'>,
): Promise<void> {
  const deployment = await describeDeployment(temporal);
  // Both are checked before either changes anything.
  const next = wanted === undefined ? undefined : find(deployment, wanted);
  const from = left === undefined ? undefined : find(deployment, left);
  const current = next ?? deployment?.builds.find(({ isCurrent }) => isCurrent);
  if (from && from === current) throw new CommandError(`${left} is the current build.`);
  if (next) await makeCurrent(temporal, next.buildId, deployment?.token ?? null);
  if (from) {
    const moved = await takeOver(temporal, from.buildId);
    process.stdout.write(`Moved ${moved} workflows to the current build.\n`);
  }
}

function find(deployment: Deployment | undefined, name: string): Build {
  const found = deployment?.builds.find(({ buildId }) => nameOf(buildId) === name);
  if (!found) throw new CommandError(`Temporal knows no build ${name}. Nothing was changed.`);
  return found;
}

function nameOf(buildId: string): string {
  return buildId === UNVERSIONED ? UNVERSIONED_NAME : buildId;
}

function report(deployment: Deployment | undefined): string {
  if (!deployment) return 'No worker has run with WORKER_VERSIONING=on.\n';
  const abandoned = new Set(abandonedOf(deployment).map(({ buildId }) => buildId));
  return columns(
    deployment.builds.map(({ buildId, isCurrent, polledAtMs, pinned }) => ({
      build: nameOf(buildId),
      'new workflows': isCurrent ? 'yes' : 'no',
      'pinned workflows': pinned,
      'worker polled': polledAtMs === null ? null : new Date(polledAtMs).toISOString(),
      abandoned: abandoned.has(buildId) ? 'yes' : 'no',
    })),
  );
}
