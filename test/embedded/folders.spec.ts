/** `farebox start` where it cannot keep its files: one sentence, and nothing is left behind. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { explainFolderProblem } from '../../src/embedded/folder-problem.ts';
import { choosePort } from '../support/ports.ts';

const CLI = join(import.meta.dirname, '../../src/cli.ts');
const NOBODY = 65_534;

describe('a start', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-folders-'));
    await chmod(folder, 0o777);
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  /** Runs as an unprivileged user, because root can open any directory. */
  function start(dataDir: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
    const isRoot = process.getuid?.() === 0;
    return startAs(isRoot ? { uid: NOBODY, gid: NOBODY } : {}, dataDir, env);
  }

  async function startAs(
    user: { readonly uid?: number; readonly gid?: number },
    dataDir: string,
    env: NodeJS.ProcessEnv = {},
  ): Promise<string> {
    const child = spawn(process.execPath, [CLI, 'start', '--data-dir', dataDir], {
      env: { PATH: process.env['PATH'], PORT: String(await choosePort()), ...env },
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 180_000,
      ...user,
    });
    const ended = new Promise((resolve) => child.once('close', resolve));
    const said = (await Promise.all([text(child.stdout), text(child.stderr)])).join('');
    assert.notEqual(await ended, 0);
    return said;
  }

  before(function () {
    // A checkout that only root may read cannot be run by anybody else.
    const isReadable = spawnSync(process.execPath, [CLI, '--version'], {
      ...(process.getuid?.() === 0 && { uid: NOBODY, gid: NOBODY }),
    });
    if (isReadable.status !== 0) this.skip();
  });

  it('in a folder that it may not write to says so', async () => {
    const locked = join(folder, 'locked');
    await mkdir(locked);
    await chmod(locked, 0o555);
    const dataDir = join(locked, 'below', 'data');
    assert.equal(
      await start(dataDir),
      `farebox: cannot use ${dataDir} as the data directory: this user may not write there: give it the directory, ` +
        'or choose another directory with --data-dir\n',
    );
    assert.deepEqual(await readdir(locked), []);
  });

  it('in a folder of another user says whose it is', async function () {
    if (process.getuid?.() !== 0) return this.skip();
    const other = join(folder, 'other');
    await mkdir(other, { mode: 0o700 });
    assert.match(
      await start(other),
      /^farebox: cannot use .* it belongs to another user \(0\).*\n$/,
    );
  });

  it('on a file, or below one, says so', async () => {
    const file = join(folder, 'file');
    await writeFile(file, '');
    await chmod(file, 0o777);
    assert.match(await start(file), /^farebox: cannot use .*: this is a file: choose another.*\n$/);
    assert.match(
      await start(join(file, 'data')),
      /^farebox: .* a part of this path is a file.*\n$/,
    );
  });

  it('where the system makes no directories says so, instead of trying forever', async function () {
    if (process.platform !== 'linux') return this.skip();
    // Others than root may not even try.
    for (const dataDir of ['/proc/farebox', '/proc/farebox/data']) {
      assert.match(await startAs({}, dataDir), /^farebox: cannot use \/proc\/farebox.*\n$/);
    }
  });

  it('without a name for its directory does not take the current one', async () => {
    assert.match(await start(''), /It must name a directory/);
    assert.deepEqual(await readdir(folder), []);
  });

  it('on an address that is not of this machine says so', async () => {
    const said = await start(join(folder, 'data'), { HOST: '192.0.2.1' });
    assert.equal(said, 'farebox: HOST must be an address of this machine, not "192.0.2.1"\n');
  });

  it('on a full disk says so, whichever program failed', () => {
    const full = /^Error: cannot use .* its disk is full/;
    for (const error of [
      Object.assign(new Error('ENOSPC: no space left on device, write'), {
        code: 'ENOSPC',
        syscall: 'write',
      }),
      new Error(
        'PostgreSQL cannot run here:\ninitdb: error: could not write: No space left on device',
      ),
    ]) {
      assert.match(String(explainFolderProblem(error, folder)), full);
    }
    const other = Object.assign(new Error('listen EACCES'), { code: 'EACCES', syscall: 'listen' });
    assert.equal(explainFolderProblem(Object.assign(other, { address: '::1' }), folder), other);
  });
});
