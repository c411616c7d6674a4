/** The table of schedules, and its state in Temporal: created once, changed in place, never doubled. */
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { readTemporalConfig } from '../../src/config.ts';
import { createTemporalClient, type TemporalClient } from '../../src/temporal/client.ts';
import {
  ensureSchedules,
  listScheduleFaults,
  restoreSchedules,
  scheduleIdOf,
  schedulesOf,
  type Schedule,
} from '../../src/temporal/schedules.ts';
import { createTestNamespace, until } from '../support/stack.ts';

const SILENT = pino({ level: 'silent' });
const ENTRY: Schedule = {
  workflow: 'countSheep',
  definition: 2,
  everySeconds: 3_600,
  catchUpSeconds: 60,
  timeoutSeconds: 600,
  summary: 'Counts sheep',
};

describe('a schedule', () => {
  let temporal: TemporalClient;

  before(async () => {
    temporal = createTemporalClient(
      readTemporalConfig({
        ...process.env,
        TEMPORAL_ADDRESS: process.env['TEST_TEMPORAL_ADDRESS'],
        TEMPORAL_NAMESPACE: await createTestNamespace(),
      }),
    );
  });
  after(() => temporal.close());

  const handle = () => temporal.client.schedule.getHandle(scheduleIdOf(temporal, ENTRY.workflow));
  afterEach(() => handle().delete());

  it('starts its workflow at its interval, one run at a time', async () => {
    await ensureSchedules(temporal, [ENTRY]);
    const { spec, action, policies, state } = await handle().describe();
    assert.deepEqual(spec.intervals, [{ every: 3_600_000, offset: undefined }]);
    assert.deepEqual(
      [action.workflowType, action.taskQueue, action.staticSummary],
      ['countSheep', temporal.taskQueue, 'Counts sheep'],
    );
    assert.ok(action.type === 'startWorkflow');
    // Another deployment in the namespace has another task queue, and so other ids.
    assert.equal(action.workflowId, `${temporal.taskQueue}/countSheep`);
    assert.equal(action.workflowExecutionTimeout, 600_000);
    assert.deepEqual([policies.overlap, policies.catchupWindow], ['SKIP', 60_000]);
    assert.equal(state.paused, false);
  });

  it('is created once by workers that start at the same time', async () => {
    await Promise.all(Array.from({ length: 8 }, () => ensureSchedules(temporal, [ENTRY])));
    const { spec } = await handle().describe();
    assert.equal(spec.intervals?.length, 1);
  });

  it('adopts a changed interval, and stays paused if an operator paused it', async () => {
    await ensureSchedules(temporal, [ENTRY]);
    await handle().pause('not today');
    await ensureSchedules(temporal, [{ ...ENTRY, everySeconds: 7 }]);
    const { spec, state } = await handle().describe();
    assert.deepEqual(spec.intervals, [{ every: 7_000, offset: undefined }]);
    assert.deepEqual([state.paused, state.note], [true, 'not today']);
  });

  it('is not changed back by a worker of an earlier release that starts later', async () => {
    await ensureSchedules(temporal, [ENTRY]);
    const earlier = { ...ENTRY, definition: 1, everySeconds: 7 };
    await ensureSchedules(temporal, [earlier]);
    await restoreSchedules(temporal, [earlier], SILENT);
    assert.equal((await handle().describe()).spec.intervals?.[0]?.every, 3_600_000);
    // With the same number, the last worker to start decides.
    await ensureSchedules(temporal, [{ ...ENTRY, everySeconds: 8 }]);
    assert.equal((await handle().describe()).spec.intervals?.[0]?.every, 8_000);
  });

  it('is brought up to date by a worker that runs, if one of an earlier release recreated it', async () => {
    await ensureSchedules(temporal, [{ ...ENTRY, definition: 1, everySeconds: 7 }]);
    await restoreSchedules(temporal, [ENTRY], SILENT);
    assert.equal((await handle().describe()).spec.intervals?.[0]?.every, 3_600_000);
  });

  it('is reported when it has other options than those of its definition', async () => {
    await ensureSchedules(temporal, [ENTRY]);
    const reasons = async (entry: Schedule) =>
      (await listScheduleFaults(temporal, [entry])).map(({ reason }) => reason);
    assert.deepEqual(await reasons(ENTRY), []);
    assert.deepEqual(await reasons({ ...ENTRY, everySeconds: 7 }), [
      'its spec differs from what this release and its settings define',
    ]);
    assert.deepEqual(await reasons({ ...ENTRY, definition: 3, timeoutSeconds: 7 }), [
      'its action differs from what this release and its settings define',
    ]);
    // A newer release made it.
    assert.deepEqual(await reasons({ ...ENTRY, definition: 1, everySeconds: 7 }), []);
  });

  it('keeps what an operator does while a worker starts', async () => {
    await ensureSchedules(temporal, [ENTRY]);
    for (let round = 0; round < 20; round += 1) {
      // A worker of the same release at first, then of others with other intervals.
      const starts = round < 10 ? ENTRY : { ...ENTRY, everySeconds: 100 + round };
      let isPaused = round % 2 === 0;
      const worker = ensureSchedules(temporal, [starts]);
      for (let changes = 0; changes < 3; changes += 1) {
        isPaused = !isPaused;
        await (isPaused ? handle().pause() : handle().unpause());
      }
      await worker;
      const { spec, state } = await handle().describe();
      assert.equal(state.paused, isPaused, `round ${round}`);
      assert.equal(spec.intervals?.[0]?.every, starts.everySeconds * 1_000, `round ${round}`);
    }
  });

  it('skips ticks during a run', async () => {
    // No worker polls here, so the first run does not end.
    await ensureSchedules(temporal, [{ ...ENTRY, everySeconds: 1 }]);
    const info = await until(async () => {
      const description = await handle().describe();
      return description.info.numActionsSkippedOverlap >= 2 && description.info;
    });
    assert.equal(info.numActionsTaken, 1);
  });

  it('ends a run that cannot continue, and starts the next one', async () => {
    // No worker polls here.
    await ensureSchedules(temporal, [{ ...ENTRY, everySeconds: 1, timeoutSeconds: 2 }]);
    const { recentActions } = await until(async () => {
      const { info } = await handle().describe();
      return info.recentActions.length >= 2 && info;
    });
    const [first] = recentActions;
    assert.ok(first);
    const { workflowId, firstExecutionRunId } = first.action.workflow;
    const run = temporal.client.workflow.getHandle(workflowId, firstExecutionRunId);
    assert.equal((await run.describe()).status.name, 'TIMED_OUT');
  });

  it('is reported when it was deleted, and created again', async () => {
    await ensureSchedules(temporal, [ENTRY]);
    assert.deepEqual(await listScheduleFaults(temporal, [ENTRY]), []);
    await handle().delete();
    await until(async () => (await listScheduleFaults(temporal, [ENTRY])).length === 1);
    await restoreSchedules(temporal, [ENTRY], SILENT);
    assert.equal((await handle().describe()).action.workflowType, 'countSheep');
  });

  it('keeps an operator’s changes while it exists', async () => {
    await ensureSchedules(temporal, [ENTRY]);
    await handle().pause('not today');
    await restoreSchedules(temporal, [{ ...ENTRY, everySeconds: 7 }], SILENT);
    const { spec, state } = await handle().describe();
    assert.deepEqual(spec.intervals, [{ every: 3_600_000, offset: undefined }]);
    assert.equal(state.paused, true);
  });
});

/** The first number is that of the definition. */
const DEFINITIONS: Readonly<Record<string, readonly unknown[]>> = {
  rollUpEarnings: [1, 60, 10, 3_600, 'Earnings: add recent charges to the sums'],
  expireHolds: [1, 60, 10, 3_600, 'Holds: release expired holds'],
  ensurePartitions: [
    1,
    86_400,
    86_400,
    82_800,
    'Charges and holds: create the partitions of the coming months',
  ],
  pruneLogs: [1, 86_400, 86_400, 3_600, 'Logs: delete old rows'],
  reconcileTopUps: [1, 900, 60, 21_600, "Reconciliation: compare the processor's books with ours"],
};

describe('the table of schedules', () => {
  it('has these definitions; a released one that changes gets a higher number', () => {
    const table = schedulesOf({ rollUpEverySeconds: 60, reconcileEverySeconds: 900 });
    assert.deepEqual(
      Object.fromEntries(table.map(({ workflow, ...row }) => [workflow, Object.values(row)])),
      DEFINITIONS,
    );
  });

  it('ends a daily run that cannot continue before the next one is due', () => {
    const table = schedulesOf({ rollUpEverySeconds: 60, reconcileEverySeconds: 900 });
    const daily = table.filter(({ everySeconds }) => everySeconds === 86_400);
    assert.ok(daily.length > 0);
    for (const { workflow, timeoutSeconds } of daily) {
      assert.ok(timeoutSeconds < 86_400, workflow);
    }
  });
});
