/** Histories of released versions run through the current code: workflows in progress must not break. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { DeterminismViolationError } from '@temporalio/workflow';
import { Worker } from '@temporalio/worker';
import { installRuntime } from '../../src/temporal/runtime.ts';
import { workflowBundle } from '../../src/temporal/workflow-bundle.ts';

const FOLDER = join(import.meta.dirname, '../histories');
const files = globSync('*/*.json', { cwd: FOLDER }).toSorted();

describe('workflow code', () => {
  before(() => installRuntime(pino({ level: 'silent' })));

  it('has recorded histories to replay', () => {
    assert.ok(files.length >= 60);
  });

  for (const file of files) {
    it(`replays ${file}`, () => replay(readFileSync(join(FOLDER, file), 'utf8')));
  }

  it('does not replay a history of other code', async () => {
    const recorded = join(FOLDER, '0.1.0/checkout-reported.json');
    const other = readFileSync(recorded, 'utf8').replaceAll('"creditTopUp"', '"somethingElse"');
    await assert.rejects(replay(other), DeterminismViolationError);
  });
});

async function replay(history: string): Promise<void> {
  await Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, JSON.parse(history));
}
