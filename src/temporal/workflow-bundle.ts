/**
 * The bundle of workflow code that the worker runs. It is built once for each version of the sources and cached, which
 * saves a second or two at each start. Safe when several processes start at once.
 */
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../root.ts';

const CACHE = join(ROOT, 'node_modules/.cache');
const FAILURES = 'src/temporal/encrypted-failures.ts';
/** Everything that workflows may import. The bundle's name is a hash of these files. */
const SOURCES = ['workflows/**/*.ts', 'src/domain/**/*.ts', FAILURES];

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
  buildId ??= hashOfSources();
  return buildId;
}

function hashOfSources(): string {
  const require = createRequire(import.meta.url);
  const { version } = require('@temporalio/worker/package.json') as { version: string };
  const hash = createHash('sha256').update(version);
  for (const file of globSync(SOURCES, { cwd: ROOT }).toSorted()) {
    hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)));
  }
  return hash.digest('hex').slice(0, 16);
}
