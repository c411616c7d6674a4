/** The settings that a start gives to its processes, and the combinations that it refuses. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { holdDataDir, secretsOf } from '../../src/embedded/data-dir.ts';
import { announceRun, environmentOf } from '../../src/embedded/environment.ts';
import { refuseHalfSettings, refuseMetricsPort, sharedSettings } from '../../src/embedded/parts.ts';

const SOURCES = join(import.meta.dirname, '../../src');
const CLI = join(SOURCES, 'cli.ts');
const DATA_DIR_MODULE = join(SOURCES, 'embedded/data-dir.ts');

const startWith = (METRICS_PORT: string) => ({
  port: 8_080,
  env: { METRICS_PORT, API_PROCESSES: '1' },
});

describe('the settings of a start', () => {
  let dataDir: string;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'farebox-settings-'));
  });
  after(() => rm(dataDir, { recursive: true, force: true }));

  const isOpenToPrivate = (env: Readonly<Record<string, string>>) =>
    sharedSettings({ port: 1, dataDir, env })['ALLOW_PRIVATE_ENDPOINTS'];

  it('allow agents on private addresses only while every part is embedded, or when set', () => {
    assert.equal(isOpenToPrivate({}), 'true');
    for (const name of ['DATABASE_URL', 'TEMPORAL_ADDRESS', 'STRIPE_SECRET_KEY']) {
      assert.equal(isOpenToPrivate({ [name]: 'real' }), 'false', name);
      assert.equal(isOpenToPrivate({ [name]: 'real', ALLOW_PRIVATE_ENDPOINTS: 'true' }), 'true');
    }
    assert.equal(isOpenToPrivate({ ALLOW_PRIVATE_ENDPOINTS: 'false' }), 'false');
  });

  it('are passed to commands run beside it, because doctor compares how often schedules run', () => {
    const intervals = { ROLL_UP_EVERY_SECONDS: '5', RECONCILE_EVERY_SECONDS: '60' };
    assert.partialDeepStrictEqual(sharedSettings({ port: 1, dataDir, env: intervals }), intervals);
  });

  it('refuse simulated payments into an external database, unless they are requested', () => {
    const database = { DATABASE_URL: 'postgres://books.example/farebox' };
    const stripe = { STRIPE_SECRET_KEY: 'sk_live_x', STRIPE_WEBHOOK_SECRET: 'whsec_x' };
    assert.throws(() => refuseHalfSettings(database), /would credit that database/);
    for (const env of [
      {},
      { ...database, ...stripe },
      { ...database, SIMULATE_PAYMENTS: 'true' },
    ]) {
      refuseHalfSettings(env);
    }
  });

  it('refuse ports for metrics that do not exist or that the API listens on', () => {
    for (const text of ['8079', '8080', '65535', '0', 'x', ' 9464']) {
      assert.throws(
        () => refuseMetricsPort(startWith(text)),
        /^Error: METRICS_PORT must be the first of 2 free ports/,
        text,
      );
    }
    for (const text of ['', '8078', '8081', '65534']) refuseMetricsPort(startWith(text));
  });

  it('keep the secrets of an earlier release and add the missing ones', async () => {
    const file = join(dataDir, 'secrets.json');
    const earlier = { masterSecret: 'm', simulatorKey: 'sk_test_s', webhookSecret: 'whsec_w' };
    await writeFile(file, JSON.stringify(earlier));
    const secrets = secretsOf(dataDir);
    assert.partialDeepStrictEqual(secrets, earlier);
    const random = [secrets.simulatorToken, ...Object.values(secrets.postgres)];
    assert.equal(new Set(random.filter((secret) => secret.length >= 43)).size, 3);
    assert.deepEqual(secretsOf(dataDir), secrets);
    assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), secrets);
    assert.equal((await stat(file)).mode & 0o777, 0o600);
  });

  it('are named when their file is damaged', async () => {
    const file = join(dataDir, 'secrets.json');
    await writeFile(file, '{');
    assert.throws(() => secretsOf(dataDir), { message: `${file} is damaged: it is not JSON` });
  });

  it('complete those of a command, unless it names another database', async () => {
    const ofRun = {
      DATABASE_URL: 'postgres://own/farebox',
      STRIPE_SECRET_KEY: 'sk_test_simulator',
    };
    const lock = holdDataDir(dataDir);
    try {
      announceRun(dataDir, ofRun);
      assert.deepEqual(await environmentOf(dataDir, {}), ofRun);
      assert.deepEqual(await environmentOf(dataDir, { DATABASE_URL: ofRun.DATABASE_URL }), ofRun);
      const other = { DATABASE_URL: 'postgres://books.example/farebox' };
      assert.deepEqual(await environmentOf(dataDir, other), other);
    } finally {
      lock?.release();
    }
  });

  it('are not those of a killed start while the next one starts', async () => {
    announceRun(dataDir, { DATABASE_URL: 'postgres://killed/farebox' });
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as AddressInfo;
    // It ends because its port is taken, which it finds when it holds the directory.
    const start = spawn(
      process.execPath,
      [CLI, 'start', `--port=${port}`, `--data-dir=${dataDir}`],
      {
        env: { PATH: process.env['PATH'] },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    assert.match(await text(start.stderr), new RegExp(`port ${port} is taken`));
    holder.close();
    const lock = holdDataDir(dataDir);
    try {
      await assert.rejects(environmentOf(dataDir, {}), /Farebox is not running/);
    } finally {
      lock?.release();
    }
  });

  it('are not those of a killed start when several commands ask at the same time', async () => {
    const code = `
      const { isHeld } = await import(${JSON.stringify(DATA_DIR_MODULE)});
      for (let count = 0; count < 5_000; count++) if (isHeld(${JSON.stringify(dataDir)})) process.exit(1);`;
    const ended = Array.from({ length: 3 }, () =>
      once(spawn(process.execPath, ['--input-type=module', '--eval', code]), 'close'),
    );
    assert.deepEqual(
      (await Promise.all(ended)).map(([exitCode]) => exitCode),
      [0, 0, 0],
    );
  });
});
