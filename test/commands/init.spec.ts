/** `farebox init`: secrets that are fresh, readable by their owner only, and kept when it runs again. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv, promisify } from 'node:util';
import { readConfig } from '../../src/config.ts';
import { withoutEmpty } from '../../src/read-setting.ts';
import { farebox, ourProgram } from '../support/stack.ts';
import { read } from '../tree/sources.ts';

describe('farebox init', () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-init-'));
  });
  after(() => rm(folder, { recursive: true }));

  const init = (name: string) => farebox(['init', '--file', join(folder, name)], { env: {} });
  const settingsOf = async (name: string) => parseEnv(await readFile(join(folder, name), 'utf8'));

  it('writes every setting of .env.example, with secrets that only its owner can read', async () => {
    const said = await init('.env');
    assert.match(
      said,
      /Add STRIPE_SECRET_KEY .*WEBHOOK_SECRET, and set BASE_URL and PUBLIC_ADDRESS\.\nTo send emails, .*SMTP_URL and MAIL_FROM: .*nobody can sign up\.\n$/,
    );
    const settings = await settingsOf('.env');
    assert.deepEqual(Object.keys(settings), Object.keys(parseEnv(read('.env.example'))));
    for (const name of ['POSTGRES', 'FAREBOX_POSTGRES', 'TEMPORAL_POSTGRES']) {
      assert.match(settings[`${name}_PASSWORD`] ?? '', /^[0-9a-f]{48}$/);
    }
    assert.match(settings['MASTER_SECRET'] ?? '', /^[0-9a-f]{64}$/);
    assert.equal((await stat(join(folder, '.env'))).mode & 0o777, 0o600);
  });

  it('writes settings that production mode accepts, once the Stripe keys are set', async () => {
    readConfig({
      ...withoutEmpty(await settingsOf('.env')),
      PRODUCTION: 'true',
      DATABASE_URL: 'postgres://postgres/farebox',
      TEMPORAL_ADDRESS: 'temporal:7233',
      STRIPE_SECRET_KEY: 'sk_live_1',
      STRIPE_WEBHOOK_SECRET: 'whsec_1',
    });
  });

  it('generates new secrets each time, and leaves an existing file unchanged', async () => {
    await init('other.env');
    const [first, other] = [await settingsOf('.env'), await settingsOf('other.env')];
    for (const name of ['POSTGRES_PASSWORD', 'MASTER_SECRET']) {
      assert.notEqual(first[name], other[name]);
    }
    await assert.rejects(init('.env'), /already exists and was not changed/);
    assert.deepEqual(await settingsOf('.env'), first);
  });

  it('leaves nothing of a file that it could not write whole', async () => {
    const path = join(folder, 'cut.env');
    // No file may get longer than one block, which is less than the settings are.
    const command = 'ulimit -f 1; exec "$0" "$@"';
    const args = [process.execPath, ourProgram(), 'init', '--file', path];
    await assert.rejects(promisify(execFile)('sh', ['-c', command, ...args]), /EFBIG/);
    await assert.rejects(stat(path), { code: 'ENOENT' });
    await init('cut.env');
    assert.match((await settingsOf('cut.env'))['MASTER_SECRET'] ?? '', /^[0-9a-f]{64}$/);
  });
});
