/**
 * mocha's usual report, then the files of the failed tests, and what their servers and pages said. Adds the
 * counts, and a line for each failure, to those of earlier runs in a file for .ci/run, which cannot rely on the output:
 * a test may print the same words. Usage: --reporter-option counts=FILE.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { readReport } from './failure-report.ts';
import Mocha, { type MochaOptions, type Runner } from 'mocha';

const { EVENT_RUN_END, EVENT_TEST_FAIL } = Mocha.Runner.constants;

export default class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Runner, options: MochaOptions) {
    super(runner, options);
    const file = (options.reporterOptions as { counts?: string } | undefined)?.counts;
    const failed = new Set<string>();
    const failures: string[] = [];
    // The error of a dead worker or of a file that did not load names the file, its runnable does not.
    runner.on(EVENT_TEST_FAIL, (test, error: { file?: string; message?: string } | undefined) => {
      // An error between two tests of a worker arrives as plain data, which ends mocha's report before its last lines.
      if (!('titlePath' in test)) Object.assign(test, titled(String(Reflect.get(test, 'title'))));
      const path = relative('', test.file ?? error?.file ?? 'unknown');
      failed.add(path);
      failures.push(`${path}: ${oneLine(test.fullTitle())}: ${oneLine(error?.message)}\n`);
    });
    runner.once(EVENT_RUN_END, () => {
      const { passes, failures: count } = this.stats;
      if (file) addCounts(file, [passes, count], failures);
      if (failed.size === 0) return;
      Mocha.reporters.Base.consoleLog(
        '  To repeat what failed, with SEED from its title where it has one:\n',
      );
      for (const path of failed) {
        Mocha.reporters.Base.consoleLog(`    bin/farebox exec mocha ${path}`);
      }
      Mocha.reporters.Base.consoleLog(`\n${readReport()}`);
    });
  }
}

function addCounts(file: string, counts: readonly number[], failures: readonly string[]): void {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const [first = '', ...earlier] = text.split('\n');
  const before = first.split(' ').map(Number);
  const sums = counts.map((count, n) => count + (before[n] ?? 0));
  writeFileSync(file, `${sums.join(' ')}\n${earlier.join('\n')}${failures.join('')}`);
}

const titled = (title: string) => ({ titlePath: () => [title], fullTitle: () => title });

const ONE_LINE_MAX = 300;

const oneLine = (text = '') => text.replaceAll(/\s+/g, ' ').slice(0, ONE_LINE_MAX);
