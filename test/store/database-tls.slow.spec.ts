/** PostgreSQL by TLS, as `sslmode` in DATABASE_URL asks for it. */
import assert from 'node:assert/strict';
import { readConfig } from '../../src/config.ts';
import { createTestAccount } from '../support/accounts.ts';
import { Certificates } from '../support/certificates.ts';
import { charge } from '../support/http.ts';
import { startPostgresTls, type PostgresTls } from '../support/postgres-tls.ts';
import { startSimulator, type Simulator } from '../support/simulators.ts';
import {
  createTestDatabase,
  farebox,
  startApi,
  startWorker,
  testEnvironment,
  type Environment,
  type TestDatabase,
} from '../support/stack.ts';

describe('PostgreSQL by TLS', () => {
  const certificates = new Certificates();
  const servers: Record<string, PostgresTls> = {};
  let database: TestDatabase;
  let simulator: Simulator;
  let env: Environment;

  before(async () => {
    database = await createTestDatabase();
    simulator = await startSimulator();
    for (const ca of ['ca', 'other-ca']) certificates.addAuthority(ca);
    certificates.add('valid', 'localhost');
    certificates.add('expired', 'localhost', -1);
    const { hostname: host, port } = new URL(database.url);
    for (const name of ['valid', 'expired']) {
      servers[name] = await startPostgresTls({ host, port: Number(port) }, certificates, name);
    }
    env = { ...(await testEnvironment(database)), ...simulator.env };
  });
  after(async () => {
    for (const each of Object.values(servers)) await each.stop();
    await simulator?.stop();
    await database?.drop();
    certificates.remove();
  });

  const urlOf = (server: string, sslmode: string | undefined, ca?: string, host = 'localhost') => {
    const url = new URL(database.url);
    [url.hostname, url.port] = [host, String(servers[server]?.port)];
    if (sslmode) url.searchParams.set('sslmode', sslmode);
    if (ca) url.searchParams.set('sslrootcert', certificates.file(`${ca}.crt`));
    return url.href;
  };

  for (const sslmode of ['verify-full', 'no-verify', undefined]) {
    const what = sslmode ? `sslmode=${sslmode}` : 'sslrootcert alone';
    it(`serves an API, a worker and a command with ${what}, on every connection`, async () => {
      const refused = servers['valid']?.refused();
      const ca = sslmode === 'no-verify' ? undefined : 'ca';
      const secure = { ...env, DATABASE_URL: urlOf('valid', sslmode, ca) };
      const [api, worker] = await Promise.all([
        startApi({ env: secure }),
        startWorker({ env: secure }),
      ]);
      const account = await createTestAccount(database.url, 10);
      const answer = await charge(api, account, { amount: 0.01 });
      await Promise.all([api.stop(), worker.stop()]);
      assert.equal(answer.status, 201);
      await farebox(['doctor', '--only', 'charges'], { env: secure });
      assert.equal(servers['valid']?.refused(), refused);
    });
  }

  for (const [what, url, reason] of [
    ['of another authority', () => urlOf('valid', 'verify-full', 'other-ca'), /certificate/],
    ['of an authority that is not given', () => urlOf('valid', 'verify-full'), /certificate/],
    [
      'for another host',
      () => urlOf('valid', 'require', 'ca', '127.0.0.1'),
      /does not match certificate's altnames/,
    ],
    ['that has expired', () => urlOf('expired', 'verify-full', 'ca'), /certificate has expired/],
  ] as const) {
    it(`is refused with a certificate ${what}, in one sentence`, async () => {
      for (const command of ['worker', 'migrate']) {
        const starting = farebox([command], { env: { ...env, DATABASE_URL: url() } });
        await assert.rejects(starting, ({ stderr }: { stderr: string }) => {
          assert.match(stderr, reason);
          assert.equal(stderr.trim().split('\n').length, 1, stderr);
          return true;
        });
      }
    });
  }

  const read = (sslmode: string) =>
    readConfig({ ...env, DATABASE_URL: `postgres://db.example.com/farebox?sslmode=${sslmode}` });

  it('has the modes that mean the same for every connection, and no other', () => {
    for (const sslmode of ['disable', 'no-verify', 'require', 'verify-full']) read(sslmode);
    for (const sslmode of ['prefer', 'allow', 'verify-ca', 'on', '']) {
      assert.throws(() => read(sslmode), /sslmode in DATABASE_URL must be /, sslmode);
    }
    assert.throws(
      () => read('verify-full&sslrootcert=/nowhere/ca.crt'),
      /sslrootcert in DATABASE_URL names no file/,
    );
    assert.throws(() => read('verify-full&ssl=true'), /by sslmode, not by ssl/);
    assert.equal(read('require').databaseUrl, read('verify-full').databaseUrl);
  });
});
