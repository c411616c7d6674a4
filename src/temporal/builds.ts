/**
 * The builds of workflow code in a deployment, as Temporal knows them (decision 0036). New runs go to the
 * current build, and pinned runs stay on theirs. Workers watch that none of them waits for a build that no
 * worker runs.
 */
import { isGrpcServiceError } from '@temporalio/client';
import type { Logger } from 'pino';
import type { TemporalClient } from './client.ts';
import { everyMinute } from './every-minute.ts';

/** The build of all workers without WORKER_VERSIONING, as Temporal's API names it. */
export const UNVERSIONED = '';

export interface Build {
  /** The hash of its workflow code, or UNVERSIONED. */
  readonly buildId: string;
  readonly isCurrent: boolean;
  /** Whether new runs ever went to it. */
  readonly wasCurrent: boolean;
  /** When a worker last polled for its tasks; null: not for five minutes, or never. */
  readonly polledAtMs: number | null;
  /** Runs that are pinned to it. */
  readonly pinned: number;
}

export interface Deployment {
  /** Oldest first. */
  readonly builds: readonly Build[];
  /** Makes a change fail if somebody else made one since. */
  readonly token: Uint8Array | null;
}

/** A waiting worker polls again at least every 60 s, so after this there is none. */
export const GONE_AFTER_MS = 90_000;

/** Status codes of gRPC: NOT_FOUND. */
const MISSING: ReadonlySet<number> = new Set([5]);

/** The name of the deployment is that of the task queue. Undefined: it never had a versioned worker. */
export async function describeDeployment(
  temporal: TemporalClient,
): Promise<Deployment | undefined> {
  const { client, taskQueue } = temporal;
  const { namespace } = client.options;
  const described = await client.workflowService
    .describeWorkerDeployment({ namespace, deploymentName: taskQueue })
    .catch(noneIfNotFound);
  if (!described) return undefined;
  const { versionSummaries, routingConfig } = described.workerDeploymentInfo ?? {};
  const polled = await readPolls(temporal);
  const currentId = routingConfig?.currentDeploymentVersion?.buildId ?? UNVERSIONED;
  const known = (versionSummaries ?? []).toReversed().map((each) => ({
    buildId: each.deploymentVersion?.buildId ?? UNVERSIONED,
    wasCurrent: Boolean(each.lastCurrentTime),
  }));
  const builds = [{ buildId: UNVERSIONED, wasCurrent: true }, ...known].map(async (each) => ({
    ...each,
    isCurrent: each.buildId === currentId,
    polledAtMs: polled.get(each.buildId) ?? null,
    pinned: each.buildId === UNVERSIONED ? 0 : await countPinned(temporal, each.buildId),
  }));
  return { builds: await Promise.all(builds), token: described.conflictToken ?? null };
}

/** Builds that have work, but no worker: nothing of it continues until one is started or another takes it over. */
export function abandonedOf(
  deployment: Deployment | undefined,
  nowMs = lastPollOf(deployment),
): Build[] {
  return (deployment?.builds ?? []).filter(
    (build) =>
      isGone(build, nowMs) &&
      (build.pinned > 0 || (build.isCurrent && build.buildId !== UNVERSIONED)),
  );
}

/** An abandoned build as `farebox doctor` reports it. */
export function offenderOf({ buildId, isCurrent, pinned }: Build) {
  return {
    subject: buildId === UNVERSIONED ? 'unversioned' : buildId,
    detail: isCurrent ? 'new workflows start on it' : `${pinned} pinned`,
  };
}

/**
 * Now, by Temporal's clock, which dates polls and may differ from ours: to within a minute while any worker
 * polls. Once none does, Temporal forgets the last poll after five minutes.
 */
function lastPollOf(deployment: Deployment | undefined): number {
  return Math.max(...(deployment?.builds ?? []).map(({ polledAtMs }) => polledAtMs ?? 0));
}

function isGone({ polledAtMs }: Build, nowMs: number): boolean {
  return polledAtMs === null || nowMs - polledAtMs > GONE_AFTER_MS;
}

/** Starts new runs on this build. Fails if no worker polls for it, or somebody else changed the deployment. */
export async function makeCurrent(
  { client, taskQueue }: TemporalClient,
  buildId: string,
  token: Uint8Array | null,
): Promise<void> {
  await client.workflowService.setWorkerDeploymentCurrentVersion({
    namespace: client.options.namespace,
    deploymentName: taskQueue,
    buildId,
    conflictToken: token,
  });
}

/**
 * Moves the runs that are pinned to this build to the current one, and returns how many. They continue there from their
 * histories, which the replay tests keep possible.
 */
export async function takeOver(temporal: TemporalClient, buildId: string): Promise<number> {
  const { client } = temporal;
  const { namespace } = client.options;
  let moved = 0;
  for await (const { workflowId, runId } of client.workflow.list({
    query: pinnedTo(temporal, buildId),
  })) {
    const updated = await client.workflowService
      .updateWorkflowExecutionOptions({
        namespace,
        workflowExecution: { workflowId, runId },
        workflowExecutionOptions: { versioningOverride: { autoUpgrade: true } },
        updateMask: { paths: ['versioning_override'] },
      })
      .catch(noneIfNotFound); // it has just ended
    if (updated) moved += 1;
  }
  return moved;
}

/**
 * What a worker of this build does: once, and for a build that never was current, new runs go to it. Later it only
 * replaces a current build without workers, so an operator's choice lasts. While it is current, it takes over
 * the runs of builds without workers. Returns the builds that are still abandoned.
 */
export async function tendBuilds(
  temporal: TemporalClient,
  buildId: string,
  log: Logger,
  asOfMs?: number,
): Promise<readonly Build[]> {
  let deployment = await describeDeployment(temporal);
  const nowMs = asOfMs ?? lastPollOf(deployment);
  const ours = deployment?.builds.find((build) => build.buildId === buildId);
  if (!deployment || !ours) {
    if (buildId === UNVERSIONED) return [];
    throw new Error('Temporal has not yet seen this worker');
  }
  const current = deployment.builds.find(({ isCurrent }) => isCurrent);
  if (!ours.isCurrent && (!ours.wasCurrent || !current || isGone(current, nowMs))) {
    await makeCurrent(temporal, buildId, deployment.token);
    log.info({ buildId, was: current?.buildId }, 'new workflows start on this build');
    deployment = await describeDeployment(temporal);
  }
  const abandoned = abandonedOf(deployment, nowMs).filter((build) => build.buildId !== buildId);
  if (!deployment?.builds.some((build) => build.isCurrent && build.buildId === buildId)) {
    return abandoned;
  }
  for (const build of abandoned) {
    const moved = await takeOver(temporal, build.buildId);
    log.warn({ from: build.buildId, moved }, 'took over workflows of a build without workers');
  }
  return [];
}

/**
 * Tends the builds until `signal` aborts, and reports after each look how many runs wait for a build without
 * workers.
 */
export async function keepBuilds(
  temporal: TemporalClient,
  buildId: string,
  log: Logger,
  { signal, report }: { readonly signal: AbortSignal; readonly report: (waiting: number) => void },
): Promise<void> {
  const tend = async () => {
    const abandoned = await tendBuilds(temporal, buildId, log);
    report(abandoned.reduce((sum, { pinned }) => sum + pinned, 0));
  };
  await everyMinute(temporal, signal, tend, (err) =>
    log.info({ err }, 'could not check the builds of workers'),
  );
}

/** By build: when a worker last polled for tasks of workflows. */
async function readPolls({ client, taskQueue }: TemporalClient): Promise<Map<string, number>> {
  const { pollers } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: taskQueue },
    taskQueueType: 1, // workflow tasks
  });
  const latest = new Map<string, number>();
  for (const { deploymentOptions, lastAccessTime } of pollers ?? []) {
    const buildId = deploymentOptions?.buildId ?? UNVERSIONED;
    const atMs = Number(lastAccessTime?.seconds ?? 0) * 1_000;
    latest.set(buildId, Math.max(atMs, latest.get(buildId) ?? 0));
  }
  return latest;
}

async function countPinned(temporal: TemporalClient, buildId: string): Promise<number> {
  const { count } = await temporal.client.workflow.count(pinnedTo(temporal, buildId));
  return count;
}

function pinnedTo({ taskQueue }: TemporalClient, buildId: string): string {
  return (
    `TemporalWorkerDeploymentVersion = "${taskQueue}:${buildId}" and ` +
    'TemporalWorkflowVersioningBehavior = "Pinned" and ExecutionStatus = "Running"'
  );
}

function noneIfNotFound(error: unknown): undefined {
  if (isGrpcServiceError(error) && MISSING.has(error.code)) return undefined;
  throw error;
}
