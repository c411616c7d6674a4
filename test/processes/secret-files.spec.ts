/** `X_FILE` names a file with the secret X. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError } from '../../src/read-setting.ts';
import { SECRET_SETTINGS, withSecretFiles } from '../../src/secret-files.ts';
import { read } from '../tree/sources.ts';
import { createTestDatabase, farebox, type TestDatabase } from '../support/stack.ts';

const says = (message: RegExp) => (error: unknown) =>
  error instanceof ConfigError && message.test(error.message);

describe('secrets from files', () => {
  let directory: string;
  let database: TestDatabase;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'farebox-secrets-'));
    database = await createTestDatabase();
  });
  after(async () => {
    await database?.drop();
    await rm(directory, { recursive: true });
  });

  async function file(name: string, text: string): Promise<string> {
    const path = join(directory, name);
    await writeFile(path, text, { mode: 0o600 });
    return path;
  }

  it('are read for each secret setting, without the line break at the end', async () => {
    for (const name of SECRET_SETTINGS) {
      const path = await file(name, `the ${name}\r\n`);
      assert.deepEqual(withSecretFiles({ [`${name}_FILE`]: path, HOST: 'x' }), {
        [name]: `the ${name}`,
        HOST: 'x',
      });
    }
  });

  it('may be variables that end with a line break, as Kubernetes makes them of files', () => {
    for (const name of SECRET_SETTINGS) {
      for (const end of ['\n', '\r\n']) {
        assert.deepEqual(withSecretFiles({ [name]: `the ${name}${end}` }), {
          [name]: `the ${name}`,
        });
      }
    }
  });

  it('are refused when the setting is there too, and when the file is empty or absent', async () => {
    const full = await file('full', 'secret');
    const both = { MASTER_SECRET: 'a', MASTER_SECRET_FILE: full };
    assert.throws(
      () => withSecretFiles(both),
      says(/^set MASTER_SECRET or MASTER_SECRET_FILE, not both$/),
    );
    const empty = { DATABASE_URL_FILE: await file('empty', '\n') };
    assert.throws(() => withSecretFiles(empty), says(/^DATABASE_URL_FILE names an empty file/));
    const absent = { SMTP_URL_FILE: join(directory, 'absent') };
    assert.throws(
      () => withSecretFiles(absent),
      says(/^SMTP_URL_FILE names a file that cannot be read: ENOENT/),
    );
  });

  it('are refused with a space around them, as in a file or a variable that was edited by hand', async () => {
    const path = await file('space', 'secret \n');
    const spaced = says(/^MASTER_SECRET begins or ends with a space or a line break/);
    assert.throws(() => withSecretFiles({ MASTER_SECRET_FILE: path }), spaced);
    for (const secret of ['secret \n', ' secret', '\ufeffsecret']) {
      assert.throws(() => withSecretFiles({ MASTER_SECRET: secret }), spaced);
    }
  });

  it('are used by commands and processes', async () => {
    const path = await file('url', `${database.url}\n`);
    const printed = await farebox(['account', 'list', '--json'], {
      env: { DATABASE_URL_FILE: path },
    });
    assert.equal(printed, '');
    const env = { DATABASE_URL_FILE: path, DATABASE_URL: database.url };
    await assert.rejects(farebox(['api'], { env }), (error: { code?: number; stderr?: string }) => {
      assert.equal(error.code, 1);
      assert.equal(error.stderr, 'farebox: set DATABASE_URL or DATABASE_URL_FILE, not both\n');
      return true;
    });
  });

  it('are documented, each by its name', () => {
    const [, section = ''] = read('docs/settings.md').split('## Secrets from files\n');
    const [text = ''] = section.split('\n## ');
    for (const name of SECRET_SETTINGS) assert.ok(text.includes(`\`${name}\``), name);
  });
});
