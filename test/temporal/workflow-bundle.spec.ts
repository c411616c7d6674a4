/** Which files the build id of the workflow code is made of. */
import assert from 'node:assert/strict';
import { appendFileSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import {
  buildIdOf,
  filesOfWorkflows,
  workflowBuildId,
} from '../../src/temporal/workflow-bundle.ts';
import { ROOT } from '../tree/sources.ts';

describe('the build id', () => {
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'farebox-sources-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  /** The build id of a copy whose file has one more comment. */
  function buildIdAfterAChange(changed: string): string {
    const copy = join(folder, changed.replaceAll('/', '-'));
    for (const part of ['src', 'workflows', 'activities'])
      cpSync(join(ROOT, part), join(copy, part), { recursive: true });
    appendFileSync(join(copy, changed), '// The next release.\n');
    return buildIdOf(copy);
  }

  it('stays when no file changes that workflows run', () => {
    for (const changed of [
      'src/domain/password.ts',
      // Workflows import its types.
      'src/domain/verdict.ts',
      'activities/top-ups.ts',
      'src/temporal/relay.ts',
    ])
      assert.equal(buildIdAfterAChange(changed), workflowBuildId(), changed);
  });

  it('changes with each file that workflows run', () => {
    const ids = [
      'workflows/top-up.ts',
      'workflows/versioned.ts',
      'workflows/trace-header.ts',
      'src/domain/top-up.ts',
      // Imported by a file of the domain alone.
      'src/domain/ids.ts',
      'src/temporal/encrypted-failures.ts',
    ].map(buildIdAfterAChange);
    assert.equal(new Set([...ids, workflowBuildId()]).size, ids.length + 1);
  });

  it('is made of the files that a bundler finds', async () => {
    const { metafile } = await build({
      entryPoints: [
        'workflows/versioned.ts',
        'workflows/trace-header.ts',
        'src/temporal/encrypted-failures.ts',
      ],
      absWorkingDir: ROOT,
      outdir: folder,
      bundle: true,
      packages: 'external',
      format: 'esm',
      write: false,
      metafile: true,
    });
    assert.deepEqual(filesOfWorkflows(ROOT), Object.keys(metafile.inputs).toSorted());
  });
});
