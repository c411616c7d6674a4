/** The embedded Temporal server on data directories that a killed start left behind. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTemporal, type TemporalOptions } from '../../src/embedded/temporal.ts';
import { LEAN_TEMPORAL } from '../support/lean-temporal.ts';
import { choosePort } from '../support/ports.ts';
import { until } from '../support/stack.ts';

const MODULE = join(import.meta.dirname, '../../src/embedded/temporal.ts');

describe('startTemporal', () => {
  let folder: string;
  let options: TemporalOptions;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-temporal-'));
    options = {
      program: process.env['TEST_TEMPORAL_PROGRAM'] ?? '',
      dataDir: join(folder, 'temporal'),
      logFile: join(folder, 'temporal.log'),
      env: { PATH: process.env['PATH'] },
      port: await choosePort(),
      uiPort: await choosePort(),
      ...LEAN_TEMPORAL,
    };
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('creates the database again if the first start was killed while it created the tables', async () => {
    await mkdir(options.dataDir);
    await writeFile(join(options.dataDir, 'temporal.db'), '');
    const temporal = await startTemporal(options);
    await temporal.stop();
    const { ino } = await stat(join(options.dataDir, 'temporal.db'));

    const again = await startTemporal(options);
    await again.stop();
    assert.equal((await stat(join(options.dataDir, 'temporal.db'))).ino, ino);
  });

  it('stops the server of a first start that was killed before that server was ready', async () => {
    const code = `
      const { startTemporal } = await import(${JSON.stringify(MODULE)});
      await startTemporal(${JSON.stringify(options)});`;
    // Without programs on its path, it starts a server that the kernel does not end with it.
    const start = spawn(process.execPath, ['--input-type=module', '--eval', code], {
      env: { PATH: folder },
      stdio: 'ignore',
    });
    const pidFile = join(options.dataDir, 'started.pid');
    const pid = await until(async () => Number(await readFile(pidFile, 'utf8').catch(() => '')));
    start.kill('SIGKILL');
    assert.equal(isAlive(pid), true);

    const temporal = await startTemporal(options);
    await until(() => !isAlive(pid));
    await temporal.stop();
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
