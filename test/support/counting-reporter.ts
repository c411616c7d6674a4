/**
 * mocha's usual report, and the counts in a file for .ci/run, which cannot rely on what is printed: a
 * test may print the same words. Usage: --reporter-option counts=FILE.
 */
import { writeFileSync } from 'node:fs';
import Mocha, { type MochaOptions, type Runner } from 'mocha';

export default class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Runner, options: MochaOptions) {
    super(runner, options);
    const file = (options.reporterOptions as { counts?: string } | undefined)?.counts;
    if (!file) throw new Error('--reporter-option counts=FILE is missing');
    runner.once(Mocha.Runner.constants.EVENT_RUN_END, () => {
      writeFileSync(file, `${this.stats.passes} ${this.stats.failures}\n`);
    });
  }
}
