/**
 * The same workflow types for workers that run with WORKER_VERSIONING. A pinned run ends on the build that it began on;
 * any other moves to the current build with its next task. Separate from index.ts, because a worker without versioning
 * may not name a behavior: Temporal refuses its tasks.
 */
import { setWorkflowOptions } from '@temporalio/workflow';
import * as workflows from './index.ts';

/** The types that usually end within a day. The others wait for weeks, or a schedule starts them again. */
const PINNED: ReadonlySet<string> = new Set<keyof typeof workflows>([
  'invocation',
  'reversals',
  'topUp',
]);

for (const [name, workflow] of Object.entries(workflows)) {
  const versioningBehavior = PINNED.has(name) ? 'PINNED' : 'AUTO_UPGRADE';
  setWorkflowOptions({ versioningBehavior }, workflow as () => Promise<unknown>);
}

export * from './index.ts';
