/**
 * A failover of Postgres whose address leads to the old server for a while, as a stale DNS entry does. That
 * one has become a standby: it accepts connections, and does not know what was committed since.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startChild, type Child } from '../../src/embedded/child.ts';
import { launchers, postgresBin } from '../../src/embedded/postgres-launcher.ts';
import { createTestAccount, type TestAccount } from '../support/accounts.ts';
import { newDataFolder } from '../support/data-folder.ts';
import { startFaultyLine, type FaultyLine } from '../support/faulty-line.ts';
import { assertError, call, charge } from '../support/http.ts';
import { startOwnPostgres } from '../support/own-servers.ts';
import { balanceOf } from '../support/payments.ts';
import { choosePort } from '../support/ports.ts';
import { farebox, startApi, until, type Server } from '../support/stack.ts';

describe('a standby at the address of Postgres', () => {
  let primary: Awaited<ReturnType<typeof startOwnPostgres>>;
  let standby: Child;
  let standbyPort: number;
  let line: FaultyLine;
  let api: Server;
  let account: TestAccount;
  const target = { host: '127.0.0.1', port: 0 };

  before(async () => {
    const folder = await newDataFolder('farebox-faults-');
    primary = await startOwnPostgres({}, folder);
    account = await createTestAccount(primary.url, 10);
    await primary.crash('SIGINT');
    standbyPort = await choosePort();
    standby = await startStandby(join(folder, 'postgres'), join(folder, 'standby'), standbyPort);
    await primary.restart();
    target.port = Number(new URL(primary.url).port);
    line = await startFaultyLine(target);
    const url = new URL(primary.url);
    url.port = String(line.port);
    api = await startApi({
      env: {
        DATABASE_URL: url.href,
        TEMPORAL_ADDRESS: '127.0.0.1:9',
        STRIPE_API_BASE: 'http://127.0.0.1:9',
        STRIPE_SECRET_KEY: 'sk_test_none',
        STRIPE_WEBHOOK_SECRET: 'whsec_none',
        MASTER_SECRET: 'of the tests of failovers of Postgres',
      },
    });
  });
  after(async () => {
    await api?.stop();
    await line?.stop();
    await standby?.stop();
    await primary?.remove();
  });

  const readiness = async () => {
    const { status, body } = await call(api, 'GET', '/readyz');
    return `${status} ${(body as { dependencies: { postgres: string } }).dependencies.postgres}`;
  };

  it('is not read, and is left when the address leads to the new primary', async () => {
    const { consumerKey: key } = account;
    assert.equal((await charge(api, account, { amount: 1 })).status, 201);
    target.port = standbyPort;
    line.damage({ kind: 'cut' });
    line.mend();
    await until(async () => (await readiness()) === '503 read_only');
    assertError(await charge(api, account, { amount: 1 }), 503, 'service_unavailable');
    // The standby would answer $10.00.
    assertError(await call(api, 'GET', '/v1/balance', { key }), 503, 'service_unavailable');

    // Connections to the standby stay open.
    target.port = Number(new URL(primary.url).port);
    await until(async () => (await readiness()) === '200 up');
    assert.equal((await charge(api, account, { amount: 1 })).status, 201);
    assert.equal(await balanceOf(api, account), 8);
  });

  it('is read by a command that an operator runs on it', async () => {
    const url = new URL(primary.url);
    url.port = String(standbyPort);
    const listed = await farebox(['account', 'list'], { env: { DATABASE_URL: url.href } });
    assert.ok(listed.includes(account.email), listed);
  });
});

/** With the data of a server that was stopped in good order. */
async function startStandby(from: string, dataDir: string, port: number): Promise<Child> {
  const { uid, gid } = statSync(from);
  const [launcher] = launchers(uid);
  // With its owners.
  await promisify(execFile)('cp', ['-a', from, dataDir]);
  await writeFile(join(dataDir, 'standby.signal'), '');
  await chown(join(dataDir, 'standby.signal'), uid, gid);
  const settings = {
    hot_standby: 'on',
    unix_socket_directories: '',
    listen_addresses: '127.0.0.1',
  };
  return startChild({
    name: 'the standby',
    launcher: launcher?.argv ?? [],
    command: [
      join(postgresBin(), 'postgres'),
      `-D${dataDir}`,
      `-p${port}`,
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C', TZ: 'UTC' },
    logFile: `${dataDir}.log`,
    ready: async () => true,
    readyTimeoutMs: 60_000,
    stopSignal: 'SIGINT',
    stopTimeoutMs: 30_000,
  });
}
