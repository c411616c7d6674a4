/** bin/farebox: what runs before anything is installed. npm is a stand-in here, everything else is real. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../support/stack.ts';

const COMMAND = join(import.meta.dirname, '../../bin/farebox');
const SOURCES = join(import.meta.dirname, '../../src');

const CLI_THAT_STARTS = `
import { holdPackages } from './embedded/data-dir.ts';
if (process.argv[2] === 'start') {
  const held = holdPackages();
  console.log('started');
  setInterval(() => held?.release, 60_000);
}`;

/** Records that it ran, takes some time, and leaves npm's record. */
const NPM = `
import { appendFileSync, copyFileSync, mkdirSync } from 'node:fs';
appendFileSync('npm-runs', process.argv.slice(2, 3) + '\\n');
await new Promise((resolve) => setTimeout(resolve, 300));
mkdirSync('node_modules', { recursive: true });
copyFileSync('package-lock.json', 'node_modules/.package-lock.json');
process.exit(Number(process.env.NPM_EXIT_CODE ?? 0));
`;

const PACKAGES = {
  '': { name: 'clone' },
  'node_modules/needed': { version: '1.0.0' },
  'node_modules/of-another-machine': { version: '1.0.0', optional: true, os: ['none'] },
};

const EXEC_USAGE = /^Usage: farebox exec <program> \[arguments\.\.\.\]$/m;

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

describe('bin/farebox', () => {
  let clone: string;
  const launched: ChildProcess[] = [];

  beforeEach(async () => {
    clone = await mkdtemp(join(tmpdir(), 'farebox-clone-'));
    await mkdir(join(clone, 'bin'));
    await mkdir(join(clone, 'src'));
    await copyFile(COMMAND, join(clone, 'bin/farebox'));
    await writeFile(join(clone, 'npm-cli.js'), NPM);
    await writeFile(join(clone, 'package.json'), '{ "type": "module" }');
    await writeFile(join(clone, 'package-lock.json'), JSON.stringify({ packages: PACKAGES }));
    await writeFile(
      join(clone, 'src/cli.ts'),
      `const args: string[] = process.argv.slice(2); console.log(args.join(' '), process.cwd());`,
    );
  });

  afterEach(async () => {
    for (const child of launched.splice(0)) child.kill('SIGKILL');
    await rm(clone, { recursive: true, force: true });
  });

  function launch(args: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
    const child = spawn(process.execPath, [join(clone, 'bin/farebox'), ...args], {
      cwd: tmpdir(),
      env: { PATH: process.env['PATH'], npm_execpath: join(clone, 'npm-cli.js'), ...env },
      stdio: 'pipe',
    });
    launched.push(child);
    return child;
  }

  const run = (args: readonly string[], env?: NodeJS.ProcessEnv) => ended(launch(args, env));

  async function npmRuns(): Promise<string[]> {
    const text = await readFile(join(clone, 'npm-runs'), 'utf8').catch(() => '');
    return text.split('\n').filter(Boolean);
  }

  it('installs before the first command, says so in one line, and not again', async () => {
    const first = await run(['some', 'command']);
    assert.equal(first.stdout.trim(), `some command ${tmpdir()}`);
    assert.match(first.stderr, /^farebox: installing[^\n]*\n$/);
    const second = await run(['some', 'command']);
    assert.equal(second.stderr, '');
    assert.deepEqual(await npmRuns(), ['ci']);
  });

  it('installs again when the lock file asks for another version', async () => {
    await run(['first']);
    const packages = { ...PACKAGES, 'node_modules/needed': { version: '1.0.1' } };
    await writeFile(join(clone, 'package-lock.json'), JSON.stringify({ packages }));
    await run(['second']);
    assert.equal((await npmRuns()).length, 2);
  });

  it('does not install beneath a running start, which uses the packages', async () => {
    await run(['first']);
    for (const file of ['root.ts', 'embedded/data-dir.ts', 'embedded/ports.ts']) {
      await cp(join(SOURCES, file), join(clone, 'src', file));
    }
    await writeFile(join(clone, 'src/cli.ts'), CLI_THAT_STARTS);
    const starts = [launch(['start']), launch(['start'])];
    for (const { stdout } of starts) if (stdout) await once(stdout, 'data');
    const packages = { ...PACKAGES, 'node_modules/needed': { version: '1.0.1' } };
    await writeFile(join(clone, 'package-lock.json'), JSON.stringify({ packages }));
    for (const start of starts) {
      const { code, stdout, stderr } = await run(['doctor', '--json']);
      assert.equal(code, 2);
      assert.match(stderr, /^farebox: .* a running `farebox start` uses .* Stop it first.*\n$/);
      const { ok, error } = JSON.parse(stdout) as { ok: unknown; error: { message: string } };
      assert.deepEqual([ok, `farebox: ${error.message}\n`], [null, stderr]);
      start.kill('SIGKILL');
      await ended(start);
    }
    assert.equal((await npmRuns()).length, 1);
    assert.equal((await run(['doctor'])).code, 0);
    assert.equal((await npmRuns()).length, 2);
  });

  it('installs once when several commands start at the same time', async () => {
    const all = await Promise.all([run(['a']), run(['b']), run(['c'])]);
    assert.deepEqual(
      all.map(({ code }) => code),
      [0, 0, 0],
    );
    assert.deepEqual(await npmRuns(), ['ci']);
  });

  it('takes over the lock of a killed installation', async () => {
    const killed = launch(['a']);
    await until(async () => (await npmRuns()).length === 1);
    killed.kill('SIGKILL');
    await ended(killed);
    await rm(join(clone, 'node_modules'), { recursive: true, force: true });
    assert.equal((await run(['b'])).code, 0);
  });

  it('stops with one message when the installation fails', async () => {
    const { code, stderr } = await run(['start'], { NPM_EXIT_CODE: '3' });
    assert.equal(code, 1);
    assert.match(stderr, /farebox: `npm ci` failed \(exit code 3\)/);
  });

  it('does not call the books wrong when it cannot run what checks them', async () => {
    for (const command of ['doctor', 'reconcile']) {
      const failed = await run([command], { NPM_EXIT_CODE: '3' });
      assert.equal(failed.code, 2, failed.stderr);
      assert.match(failed.stderr, /farebox: `npm ci` failed/);
      await rm(join(clone, 'node_modules'), { recursive: true, force: true });
    }
    assert.equal((await run(['doctor'])).code, 0);
    await writeFile(join(clone, 'package-lock.json'), '{');
    const damaged = await run(['doctor']);
    assert.equal(damaged.code, 2);
    assert.match(damaged.stderr, /^farebox: SyntaxError: /);
  });

  it('runs any command with the tools of node_modules/.bin, and keeps its exit code', async () => {
    const { code, stdout } = await run(['exec', 'sh', '-c', 'echo "$PATH"; exit 7']);
    assert.equal(code, 7);
    assert.equal(stdout.split(':')[0], join(clone, 'node_modules/.bin'));
  });

  it('says that a program does not exist', async () => {
    const { code, stderr } = await run(['exec', 'no-such-program']);
    assert.equal(code, 127);
    assert.match(stderr, /^farebox: there is no program no-such-program in/m);
    assert.match(stderr, EXEC_USAGE);
    assert.doesNotMatch(stderr, /ENOENT/);
  });

  it('prints the usage of exec, and installs nothing for it', async () => {
    for (const option of ['--help', '-h']) {
      const { code, stdout } = await run(['exec', option]);
      assert.equal(code, 0);
      assert.match(stdout, EXEC_USAGE);
    }
    const { code, stderr } = await run(['exec']);
    assert.equal(code, 2);
    assert.match(stderr, EXEC_USAGE);
    assert.equal(existsSync(join(clone, 'node_modules')), false);
  });

  it('gives --help behind a program to the program', async () => {
    const program = [process.execPath, '-p', 'process.argv.at(-1)', '--', '--help'];
    const { code, stdout } = await run(['exec', ...program]);
    assert.equal(code, 0);
    assert.equal(stdout.trim(), '--help');
  });

  it('forwards signals to the command', async () => {
    const script = `process.once('SIGTERM', () => { console.log('got it'); process.exit(5); });
      setInterval(() => {}, 1_000); console.log('ready');`;
    const child = launch(['exec', process.execPath, '-e', script]);
    const end = ended(child);
    child.stdout?.once('data', () => child.kill('SIGTERM'));
    const { code, stdout } = await end;
    assert.equal(code, 5);
    assert.match(stdout, /got it/);
  });
});

async function ended(child: ChildProcess): Promise<Ended> {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, stdout, stderr };
}
