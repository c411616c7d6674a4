/** CI relies on the counts in the file, so they are right for every way in which a spec file can end. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const REPORTER = join(import.meta.dirname, 'counting-reporter.ts');
const MOCHA = join(import.meta.dirname, '../../node_modules/mocha/bin/mocha.js');

describe('the counting reporter', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'farebox-reporter-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  function run(specs: Readonly<Record<string, string>>, ...flags: readonly string[]) {
    for (const [name, code] of Object.entries(specs)) writeFileSync(join(folder, name), code);
    const counts = join(folder, 'counts');
    const { status, stdout } = spawnSync(
      process.execPath,
      [MOCHA, '--no-config', '--reporter', REPORTER, '--reporter-option', `counts=${counts}`]
        .concat(flags)
        .concat(Object.keys(specs)),
      { cwd: folder, encoding: 'utf8', env: { ...process.env, TEST_FOLDER: folder } },
    );
    const [written = '', ...failures] = readFileSync(counts, 'utf8').trimEnd().split('\n');
    return { status, stdout, counts: written, failures };
  }

  const GOOD = `it('passes', () => {}); it('passes too', () => {});`;
  const BAD = `it('passes', () => {}); it('fails', () => { throw new Error('no'); });`;
  const HOOK = `describe('a suite', () => { before(() => { throw new Error('no'); }); it('is not run', () => {}); });`;

  for (const flags of [[], ['--parallel', '--jobs', '2']]) {
    it(`counts each test once, and a failed hook as a failure: mocha ${flags.join(' ')}`, () => {
      const specs = { 'a.cjs': GOOD, 'b.cjs': BAD, 'c.cjs': HOOK, 'd.cjs': GOOD };
      const { status, stdout, counts, failures } = run(specs, ...flags);
      assert.equal(counts, '5 2');
      assert.deepEqual(failures.toSorted(), [
        'b.cjs: fails: no',
        'c.cjs: a suite "before all" hook for "is not run": no',
      ]);
      assert.equal(status, 2);
      for (const name of ['b', 'c']) assert.ok(stdout.includes(`exec mocha ${name}.cjs\n`), stdout);
    });
  }

  it('counts a file that does not load as a failure, and still counts the others', () => {
    const specs = { 'a.cjs': GOOD, 'b.cjs': `throw new Error('no');`, 'c.cjs': GOOD };
    const { status, stdout, counts, failures } = run(specs, '--parallel', '--jobs', '2');
    assert.equal(counts, '4 1');
    assert.match(failures.join('\n'), /^b\.cjs: .*no$/);
    assert.equal(status, 1);
    assert.match(stdout, /exec mocha b\.cjs\n/);
  });

  it('adds to the counts of an earlier run', () => {
    run({ 'a.cjs': GOOD, 'b.cjs': BAD });
    const { counts, failures } = run({ 'b.cjs': BAD });
    assert.equal(counts, '4 2');
    assert.deepEqual(failures, ['b.cjs: fails: no', 'b.cjs: fails: no']);
  });

  it('counts a worker that dies as a failure', () => {
    const specs = {
      'a.cjs': GOOD,
      'b.cjs': `it('dies', () => { process.kill(process.pid, 'SIGKILL'); });`,
    };
    const { status, counts } = run(specs, '--parallel', '--jobs', '2');
    assert.equal(counts, '2 1');
    assert.equal(status, 1);
  });

  it('counts an error outside of any test as a failure, and still counts the others', () => {
    const early = `setImmediate(() => { throw new Error('no'); }); it('passes', () => {});`;
    const specs = { 'a.cjs': GOOD, 'b.cjs': early, 'c.cjs': GOOD };
    const { stdout, counts, failures } = run(specs, '--parallel', '--jobs', '2');
    assert.equal(counts, '4 1');
    assert.match(failures.join('\n'), /Uncaught error outside test suite: no/);
    assert.match(stdout, /Uncaught Error: no/);
  });

  it('prints the logs of the servers of a failed test after everything else', () => {
    writeFileSync(join(folder, 'api.log'), 'why it failed\n');
    const spec = `
      const ours = import(${JSON.stringify(join(import.meta.dirname, 'failure-report.ts'))});
      it('fails', async () => {
        (await ours).noteLog(${JSON.stringify(join(folder, 'api.log'))});
        throw new Error('no');
      });
      afterEach(async function () {
        const { reportFailure, logTails } = await ours;
        reportFailure(this.currentTest, logTails());
      });`;
    for (const flags of [[], ['--parallel', '--jobs', '2']]) {
      rmSync(join(folder, 'failures.txt'), { force: true });
      const { stdout } = run({ 'a.cjs': spec, 'b.cjs': GOOD }, ...flags);
      assert.match(
        stdout,
        /exec mocha a\.cjs\n\nfails:\n  api\.log ends with:\n    why it failed\n/,
      );
    }
  });
});
