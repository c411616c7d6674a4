/** The settings that `farebox env` prints, as a shell and as readers of .env files take them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { holdDataDir } from '../../src/embedded/data-dir.ts';
import { announceRun } from '../../src/embedded/environment.ts';
import { farebox } from '../support/stack.ts';

const SETTINGS = {
  PLAIN: 'postgres://farebox:a%20b@127.0.0.1:5432/farebox',
  URL: 'postgres://a:b@127.0.0.1:5432/c?sslmode=require&application_name=$(echo d)',
  WORDS: 'two  words # and `a` "comment" \\n ; ~',
  APOSTROPHE: "it's here & there",
  LINES: '-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n',
  EMPTY: '',
};
/** A shell can quote it, a reader of .env files cannot. */
const BOTH = `'it costs $1', "more" \\ or less`;

describe('farebox env', () => {
  let dataDir: string;
  let held: { release(): void } | undefined;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'farebox-env-'));
    held = holdDataDir(dataDir);
  });
  after(async () => {
    held?.release();
    await rm(dataDir, { recursive: true, force: true });
  });

  const print = () => farebox(['env', '--data-dir', dataDir], { env: {} });

  it('prints values that a shell and a reader of .env files take as they are', async () => {
    announceRun(dataDir, { ...SETTINGS, BASE_URL: 'http://127.0.0.1:8080' });
    const printed = await print();
    assert.match(printed, /^PLAIN=postgres:\/\/farebox:a%20b@127\.0\.0\.1:5432\/farebox$/m);
    const parsed = parseEnv(printed);
    for (const [name, value] of Object.entries(SETTINGS)) {
      assert.equal(inShell(printed, name), value, name);
      assert.equal(parsed[name], value, name);
    }
    assert.equal(parsed['FAREBOX_URL'], 'http://127.0.0.1:8080');
  });

  it('prints only the settings for a tool server, if asked, and no secret of Farebox', async () => {
    announceRun(dataDir, { ...SETTINGS, BASE_URL: 'http://127.0.0.1:8080' });
    const printed = await farebox(['env', '--tool-server', '--data-dir', dataDir], { env: {} });
    assert.equal(printed, 'FAREBOX_URL=http://127.0.0.1:8080\n');
  });

  it('prints every other value for a shell', async () => {
    announceRun(dataDir, { BOTH });
    assert.equal(inShell(await print(), 'BOTH'), BOTH);
  });
});

/** The setting, as a program finds it that a shell starts. */
function inShell(printed: string, name: string): string {
  const script = 'set -a; eval "$PRINTED"; printenv "$NAME"';
  const env = { PATH: process.env['PATH'], PRINTED: printed, NAME: name };
  return execFileSync('sh', ['-c', script], { env, encoding: 'utf8' }).slice(0, -1);
}
