/**
 * The bundle of workflow code that the worker runs. It is built once for each version of the sources and cached, which
 * saves a second or two at each start. Safe when several processes start at once.
 */
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

const ROOT = join(import.meta.dirname, '../..');
const CACHE = join(ROOT, 'node_modules/.cache');
/** Everything that workflows may import. The bundle's name is a hash of these files. */
const SOURCES = ['workflows/**/*.ts', 'src/domain/**/*.ts'];

export async function workflowBundle(): Promise<{ codePath: string }> {
  const codePath = join(CACHE, `workflows-${hashOfSources()}.js`);
  if (!existsSync(codePath)) {
    const { code } = await bundleWorkflowCode({
      workflowsPath: join(ROOT, 'workflows/index.ts'),
      logger: new DefaultLogger('WARN'),
    });
    mkdirSync(CACHE, { recursive: true });
    const draft = `${codePath}.${process.pid}`;
    writeFileSync(draft, code);
    renameSync(draft, codePath);
  }
  return { codePath };
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
