/** The `archive_command` of docs/operations.md, run in a shell as PostgreSQL runs it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { documentedArchiveCommand } from '../support/restorable-postgres.ts';

const NAME = '000000010000000000000001';
const run = promisify(execFile);

describe('the documented archive_command', () => {
  let folder: string;
  let archive: string;
  let wal: Buffer;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-archive-'));
    archive = join(folder, 'wal');
    await mkdir(archive);
    wal = randomBytes(100_000);
    await writeFile(join(folder, NAME), wal);
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  /** `first` is a command of the shell that comes before it. */
  const archived = (first = ':') => {
    const command = documentedArchiveCommand(archive).replaceAll('%p', NAME).replaceAll('%f', NAME);
    return run('sh', ['-c', `${first}; ${command}`], { cwd: folder });
  };

  it('archives a file after a copy of it was cut off', async () => {
    // No file may get more than a few kilobytes, like on a disk that is almost full.
    await assert.rejects(archived('ulimit -f 8'));
    assert.ok(!(await readdir(archive)).includes(NAME));
    await archived();
    assert.deepEqual(await readdir(archive), [NAME]);
    assert.deepEqual(await readFile(join(archive, NAME)), wal);
  });

  it('accepts a file that the archive has, and keeps a different one', async () => {
    await archived();
    await archived();
    const other = randomBytes(100_000);
    await writeFile(join(archive, NAME), other);
    await assert.rejects(archived());
    assert.deepEqual(await readFile(join(archive, NAME)), other);
  });
});
