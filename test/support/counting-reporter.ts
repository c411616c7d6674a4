/**
 * mocha's usual report, then the files of the failed tests, and the counts in a file for .ci/run, which cannot rely
 * on the output: a test may print the same words. Usage: --reporter-option counts=FILE.
 */
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import Mocha, { type MochaOptions, type Runner } from 'mocha';

const { EVENT_RUN_END, EVENT_TEST_FAIL } = Mocha.Runner.constants;

export default class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Runner, options: MochaOptions) {
    super(runner, options);
    const file = (options.reporterOptions as { counts?: string } | undefined)?.counts;
    const failed = new Set<string>();
    // The error of a dead worker or of a file that did not load names the file, its runnable does not.
    runner.on(EVENT_TEST_FAIL, (test, error: { file?: string } | undefined) => {
      failed.add(relative('', test.file ?? error?.file ?? 'unknown'));
    });
    runner.once(EVENT_RUN_END, () => {
      if (file) writeFileSync(file, `${this.stats.passes} ${this.stats.failures}\n`);
      if (failed.size === 0) return;
      Mocha.reporters.Base.consoleLog(
        '  To repeat what failed, with SEED from its title where it has one:\n',
      );
      for (const path of failed) {
        Mocha.reporters.Base.consoleLog(`    bin/farebox exec mocha ${path}`);
      }
    });
  }
}
