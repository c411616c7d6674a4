/**
 * The bundle of workflow code that the worker runs. It is built once for each version of the sources and cached, which
 * saves a second or two at each start. Safe when several processes start at once.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, posix } from 'node:path';
import { ROOT } from '../root.ts';

const CACHE = join(ROOT, 'node_modules/.cache');
const FAILURES = 'src/temporal/encrypted-failures.ts';
/** Where the workflow code of every variant of the bundle begins. */
const ENTRIES = ['workflows/versioned.ts', 'workflows/trace-header.ts', FAILURES];

const TYPES_ONLY = /^(?:import|export) type [^;]+;/gm;
/** A quoted path to a file of ours. One too many only makes a needless build, but one too few would hide a change. */
const PATH = /'(\.{1,2}\/[^']+\.ts)'/g;

export interface BundleOptions {
  /** For a worker with WORKER_VERSIONING. */
  readonly isVersioned?: boolean;
  /** Whether the messages of failures are payloads, which a codec encrypts. */
  readonly encryptsFailures?: boolean;
}

export async function workflowBundle({
  isVersioned = false,
  encryptsFailures = false,
}: BundleOptions = {}): Promise<{ codePath: string }> {
  const variant = `${isVersioned ? '-versioned' : ''}${encryptsFailures ? '-encrypted' : ''}`;
  const codePath = join(CACHE, `workflows-${workflowBuildId()}${variant}.js`);
  if (!existsSync(codePath)) {
    const { bundleWorkflowCode, DefaultLogger } = await import('@temporalio/worker');
    const { code } = await bundleWorkflowCode({
      workflowsPath: join(ROOT, `workflows/${isVersioned ? 'versioned' : 'index'}.ts`),
      workflowInterceptorModules: [join(ROOT, 'workflows/trace-header.ts')],
      ...(encryptsFailures && { failureConverterPath: join(ROOT, FAILURES) }),
      logger: new DefaultLogger('WARN'),
    });
    mkdirSync(CACHE, { recursive: true });
    const draft = `${codePath}.${process.pid}`;
    writeFileSync(draft, code);
    renameSync(draft, codePath);
  }
  return { codePath };
}

let buildId: string | undefined;

/** Names the workflow code of this release, as a hash of its sources. Releases with the same workflow code share it. */
export function workflowBuildId(): string {
  buildId ??= buildIdOf(ROOT);
  return buildId;
}

/** The build id of the sources in a folder. */
export function buildIdOf(root: string): string {
  const require = createRequire(import.meta.url);
  const { version } = require('@temporalio/worker/package.json') as { version: string };
  const hash = createHash('sha256').update(version);
  for (const file of filesOfWorkflows(root)) {
    hash.update(`${file}\0`).update(readFileSync(join(root, file)));
  }
  return hash.digest('hex').slice(0, 16);
}

/** The files that workflows run: the entries, and what files among them import besides types. */
export function filesOfWorkflows(root: string): readonly string[] {
  const files = new Set(ENTRIES);
  // A file that is added here has its turn in the same loop.
  for (const file of files) {
    const code = readFileSync(join(root, file), 'utf8').replaceAll(TYPES_ONLY, '');
    for (const [, path = ''] of code.matchAll(PATH))
      files.add(posix.join(posix.dirname(file), path));
  }
  return [...files].toSorted();
}
