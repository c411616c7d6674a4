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
  /** By file; undefined when it replays. */
  let errors: ReadonlyMap<string, Error | undefined>;

  before(async () => {
    installRuntime(pino({ level: 'silent' }));
    errors = await replay(files.map((file) => [file, read(file)]));
  });

  it('has recorded histories to replay', () => {
    assert.ok(files.length >= 60);
  });

  for (const file of files) {
    it(`replays ${file}`, () => {
      assert.ok(errors.has(file));
      assert.ifError(errors.get(file));
    });
  }

  it('does not replay a history of other code', async () => {
    const other = read('0.1.0/checkout-reported.json').replaceAll(
      '"creditTopUp"',
      '"somethingElse"',
    );
    const found = await replay([['other', other]]);
    assert.ok(found.get('other') instanceof DeterminismViolationError);
  });
});

const read = (file: string): string => readFileSync(join(FOLDER, file), 'utf8');

/** By one worker, because its start takes longer than a history. */
async function replay(histories: readonly (readonly [name: string, json: string])[]) {
  const errors = new Map<string, Error | undefined>();
  const options = { workflowBundle: await workflowBundle() };
  const replayed = Worker.runReplayHistories(
    options,
    histories.map(([workflowId, json]) => ({ workflowId, history: JSON.parse(json) })),
  );
  for await (const { workflowId, error } of replayed) errors.set(workflowId, error);
  return errors;
}
