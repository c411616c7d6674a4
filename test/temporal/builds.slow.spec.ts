/**
 * A rolling deployment with WORKER_VERSIONING: two builds of the workflow code beside each other. Temporal
 * itself says on which build each run ended.
 */
import assert from 'node:assert/strict';
import { appendFile, cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { pino } from 'pino';
import { startChild, type Child } from '../../src/embedded/child.ts';
import type { TopUp } from '../../src/store/top-ups/top-ups.ts';
import {
  abandonedOf,
  describeDeployment,
  GONE_AFTER_MS,
  makeCurrent,
  offenderOf,
  tendBuilds,
  UNVERSIONED,
} from '../../src/temporal/builds.ts';
import { workflowBuildId } from '../../src/temporal/workflow-bundle.ts';
import { aloneInNamespace, farebox, PATIENTLY, until, type Server } from '../support/stack.ts';
import { openTopUpHarness, type Consumer } from '../support/top-up-harness.ts';
import { ROOT } from '../tree/sources.ts';

const OURS = workflowBuildId();
const later = () => Date.now() + GONE_AFTER_MS + 1_000;
const log = pino({ level: 'silent' });

describe('workers with versioning', () => {
  let harness: Awaited<ReturnType<typeof openTopUpHarness>>;
  let consumer: Consumer;
  let folder: string;
  let ours: Server;
  let next: Child;
  /** The build of the copy. */
  let theirs: string;
  const open: Record<string, TopUp> = {};

  before(async () => {
    folder = await copyOfTheProgram();
    harness = await openTopUpHarness({ ...(await aloneInNamespace()), WORKER_VERSIONING: 'on' });
    consumer = await harness.newConsumer();
    ours = await harness.startWorker();
  });
  after(async () => {
    await next?.stop();
    await harness?.close();
    await rm(folder, { recursive: true });
  });

  const builds = async () => (await describeDeployment(harness.temporal))?.builds ?? [];
  const current = async () => (await builds()).find(({ isCurrent }) => isCurrent)?.buildId;

  async function pay({ id, sessionUrl }: TopUp): Promise<void> {
    await harness.pay(sessionUrl);
    await harness.statusBecomes({ id }, 'completed');
  }

  /** The build that took the run's last step. */
  async function buildOf({ id }: TopUp): Promise<string | null | undefined> {
    const { raw } = await harness.workflow(id).describe();
    return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId;
  }

  it('start new runs on the build that came last', async () => {
    await until(async () => (await current()) === OURS);
    open['stays'] = await harness.checkout(consumer, 11);
    open['waits'] = await harness.checkout(consumer, 12);
    next = await startCopy();
    theirs = await until(async () => {
      const buildId = await current();
      return buildId !== OURS && buildId;
    });
    open['new'] = await harness.checkout(consumer, 13);
    assert.deepEqual([await buildOf(open['stays']), await buildOf(open['new'])], [OURS, theirs]);
  });

  it('end each pinned run on the build that it began on', async () => {
    await pay(open['stays']!);
    await pay(open['new']!);
    assert.deepEqual([await buildOf(open['stays']!), await buildOf(open['new']!)], [OURS, theirs]);
  });

  it('leave a current build alone that an operator or a later worker chose', async () => {
    await tendBuilds(harness.temporal, OURS, log);
    assert.equal(await current(), theirs);
    // Nor does a worker whose clock is ahead of Temporal's.
    const now = Date.now;
    Date.now = () => now() + 2 * GONE_AFTER_MS;
    await tendBuilds(harness.temporal, OURS, log).finally(() => (Date.now = now));
    assert.equal(await current(), theirs);
    await farebox(['builds', '--make-current', OURS], harness);
    await tendBuilds(harness.temporal, theirs, log);
    assert.equal(await current(), OURS);
    await makeCurrent(harness.temporal, theirs, null);
  });

  it('change nothing when one of two builds is unknown, or would take over from itself', async () => {
    const refused: readonly (readonly [string, RegExp])[] = [
      ['typo', /Temporal knows no build typo\. Nothing was changed\./],
      [OURS, /is the current build/],
    ];
    for (const [left, said] of refused) {
      const both = ['builds', '--make-current', OURS, '--take-over', left];
      await assert.rejects(farebox(both, harness), said);
      assert.equal(await current(), theirs);
    }
  });

  it('take over the runs of a build without workers, and report them until then', async () => {
    await ours.stop();
    const left = async (nowMs: number) =>
      abandonedOf(await describeDeployment(harness.temporal), nowMs).map(offenderOf);
    // A worker that is only restarting keeps its runs.
    assert.deepEqual(await left(Date.now()), []);
    // As doctor reports it. Temporal's count of runs may be a moment late.
    await until(async () =>
      isDeepStrictEqual((await left(later()))[0], { subject: OURS, detail: '1 pinned' }),
    );
    await tendBuilds(harness.temporal, theirs, log, later());
    await pay(open['waits']!);
    assert.equal(await buildOf(open['waits']!), theirs);
  });

  it('move the runs of a build to the current one when an operator says so', async () => {
    ours = await harness.startWorker();
    // Temporal refuses a build without workers.
    await until(() =>
      makeCurrent(harness.temporal, OURS, null).then(
        () => true,
        () => false,
      ),
    );
    const moves = await harness.checkout(consumer, 16);
    assert.equal(await buildOf(moves), OURS);
    await makeCurrent(harness.temporal, theirs, null);
    // Temporal's list of workflows shows a new one a moment later.
    await until(async () => (await builds()).find(({ buildId }) => buildId === OURS)?.pinned === 1);
    const printed = await farebox(['builds', '--take-over', OURS], harness);
    assert.ok(printed.startsWith('Moved 1 workflows to the current build.\n'), printed);
    await pay(moves);
    assert.equal(await buildOf(moves), theirs);
    await ours.stop();
  });

  it('give way to workers without versioning, once none is left', async () => {
    const back = await harness.checkout(consumer, 14);
    await next.stop();
    await tendBuilds(harness.temporal, UNVERSIONED, log);
    assert.equal(await current(), theirs);
    const worker = await harness.startWorker({ WORKER_VERSIONING: 'off' });
    await tendBuilds(harness.temporal, UNVERSIONED, log, later());
    assert.equal(await current(), UNVERSIONED);
    const listed = await farebox(['builds'], harness);
    assert.match(listed, /^unversioned +yes/m);
    await pay(back);
    await pay(await harness.checkout(consumer, 15));
    await worker.stop();
  });

  function startCopy(): Promise<Child> {
    const { PATH, HOME } = process.env;
    return startChild({
      name: 'the worker of the next release',
      command: [process.execPath, join(folder, 'src/cli.ts'), 'worker'],
      env: { PATH, HOME, ...harness.env },
      logFile: join(folder, 'worker.log'),
      ready: 'message',
      ...PATIENTLY,
    });
  }
});

/** Its workflow code has another comment, which is enough for another build. */
async function copyOfTheProgram(): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'farebox-build-'));
  for (const part of ['src', 'workflows', 'activities', 'migrations', 'package.json']) {
    await cp(join(ROOT, part), join(copy, part), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  await appendFile(join(copy, 'workflows/top-up.ts'), '// The next release.\n');
  return copy;
}
