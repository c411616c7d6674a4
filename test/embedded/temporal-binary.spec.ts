/** Where the `temporal` program comes from when no download is needed. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findTemporal } from '../../src/embedded/temporal-binary.ts';

describe('findTemporal', () => {
  let folder: string;
  let env: Record<string, string>;
  let cached: string;
  let reported: string[];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-temporal-'));
    env = { PATH: join(folder, 'bin'), XDG_CACHE_HOME: join(folder, 'cache') };
    cached = join(folder, 'cache/farebox/temporal-1.9.1/temporal');
    await writeProgram(cached, '1.9.1');
    reported = [];
  });

  afterEach(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  const find = () => findTemporal(env, (line) => reported.push(line));

  for (const version of ['1.9.1', '1.10.0', '2.0.0']) {
    it(`takes ${version} from PATH`, async () => {
      const onPath = join(folder, 'bin/temporal');
      await writeProgram(onPath, version);
      assert.equal(await find(), onPath);
      assert.deepEqual(reported, []);
    });
  }

  for (const version of ['1.9.0', '1.5.1', '0.0.0-DEV']) {
    it(`reports ${version} on PATH as too old, and takes the cached one`, async () => {
      await writeProgram(join(folder, 'bin/temporal'), version);
      assert.equal(await find(), cached);
      assert.equal(reported.length, 1);
      assert.match(reported[0] ?? '', new RegExp(`${version}, and 1\\.9\\.1 is needed`));
    });
  }

  it('takes the cached one when PATH has none', async () => {
    assert.equal(await find(), cached);
    assert.deepEqual(reported, []);
  });
});

async function writeProgram(path: string, version: string): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true });
  const says = `temporal version ${version} (Server 1.32.0, UI 2.54.1)`;
  await writeFile(path, `#!/bin/sh\necho "${says}"\n`, { mode: 0o755 });
}
