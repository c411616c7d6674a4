/**
 * The image, built by buildah and run with the commands and settings of docker-compose.yml, beside a PostgreSQL and a
 * Temporal server of the test: `npm run test:images`. Takes about six minutes, most of them for packages. In the
 * environment:
 *
 *   IMAGE                 tries this image, which buildah has, instead of building one
 *   IMAGE_BUILD_OPTIONS   options for `buildah bud`, such as `--volume` for the certificates of a private registry
 *   BASE_IMAGE            `debootstrap`: makes the base image on this machine, where no registry of images can be
 *                         reached. Takes three minutes more; add `IMAGE_BUILD_OPTIONS=--pull-never`.
 *
 * Needs root, to confine the image. Without Debian's package `tini`, the program is process 1.
 */
import assert from 'node:assert/strict';
import { choosePort } from '../support/ports.ts';
import { createEmptyDatabase, createTestNamespace, until } from '../support/stack.ts';
import { makeBaseImage } from './base-image.ts';
import { composeEnvironment, composeServices, type ComposeService } from './compose.ts';
import {
  buildImage,
  createContainer,
  HAS_INIT,
  type Container,
  type Running,
} from './container.ts';

const BUILT = 'farebox:test';

interface Created {
  readonly consumerKey: string;
  readonly developerKey: string;
}

describe('the image', function () {
  this.timeout(20 * 60_000);
  let container: Container;
  let env: Record<string, string>;
  let drop: () => Promise<void>;
  let service: ComposeService;

  before(async () => {
    if (process.env['BASE_IMAGE'] === 'debootstrap') await makeBaseImage();
    const given = process.env['IMAGE'];
    if (!given) await buildImage(BUILT, process.env['IMAGE_BUILD_OPTIONS'] ?? '');
    const { api } = await composeServices();
    service = api ?? assert.fail();
    container = await createContainer(given ?? BUILT, service.tmpfs ?? []);
    const database = await createEmptyDatabase();
    drop = () => database.drop();
    env = {
      ...(await composeEnvironment()),
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: process.env['TEST_TEMPORAL_ADDRESS'] as string,
      TEMPORAL_NAMESPACE: await createTestNamespace(),
      HOST: '127.0.0.1',
    };
  });

  after(async () => {
    await container?.remove();
    await drop?.();
  });

  it('runs as a user who can write nothing in it', async () => {
    assert.equal(container.config.User, 'node');
    assert.match(await container.exec(['id']), /^uid=1000\(node\) gid=1000\(node\)/);
    const writable = 'find / -xdev -writable -not -type l -not -path "/proc/*" -not -path "/sys/*"';
    const found = (await container.exec(['sh', '-c', `${writable} 2>/dev/null || true`])).split(
      '\n',
    );
    const expected =
      /^$|^\/(dev|tmp|var\/tmp|run\/lock|home\/node|etc\/(hosts|resolv\.conf))(\/|$)/;
    assert.deepEqual(
      found.filter((path) => !expected.test(path)),
      [],
    );
  });

  it('is confined as docker-compose.yml says', async () => {
    const { read_only, init, cap_drop, security_opt } = service;
    assert.deepEqual([read_only, init, cap_drop], [true, true, ['ALL']]);
    assert.deepEqual(security_opt, ['no-new-privileges:true']);
    const status = await container.execConfined(['cat', '/proc/self/status']);
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      assert.match(status, new RegExp(`^${set}:\\t0+$`, 'm'));
    assert.match(status, /^NoNewPrivs:\t1$/m);
    assert.match(status, /^Uid:\t1000\t1000\t1000\t1000$/m);
    const mounts = await container.execConfined(['cat', '/proc/mounts']);
    assert.match(mounts, /^\S+ \/ \S+ ro,/m);
    for (const path of service.tmpfs ?? []) assert.ok(mounts.includes(`tmpfs ${path} tmpfs rw,`));
    if (!HAS_INIT) return;
    assert.equal(await container.execConfined(['cat', '/proc/1/comm']), 'tini-static');
  });

  it('contains what runs in production, and nothing else of ours', async () => {
    const files = (await container.exec(['ls', '-A', '/app'])).split('\n');
    assert.deepEqual(files, [
      'README.md',
      'activities',
      'client',
      'console',
      'docs',
      'examples',
      'migrations',
      'node_modules',
      'package-lock.json',
      'package.json',
      'program',
      'src',
      'workflows',
    ]);
    const packages = await container.exec(['ls', '/app/node_modules']);
    for (const development of ['mocha', 'typescript', 'vite', 'playwright-core'])
      assert.ok(!packages.split('\n').includes(development), development);
  });

  it('migrates, charges, answers its health checks and ends when told to', async () => {
    await container.execConfined([...container.config.Entrypoint, 'migrate'], env);
    const created = JSON.parse(
      await container.execConfined(
        [
          ...container.config.Entrypoint,
          'account',
          'create',
          '--email',
          'owner@farebox.example',
          '--balance',
          '1',
          '--json',
        ],
        env,
      ),
    ) as Created;

    const ports = { api: await choosePort(), worker: await choosePort() };
    const apiPort = await choosePort();
    const api = await container.start(['api'], {
      ...env,
      PORT: String(apiPort),
      METRICS_PORT: String(ports.api),
    });
    const worker = await container.start(['worker'], {
      ...env,
      METRICS_PORT: String(ports.worker),
    });
    try {
      const [, ...check] = container.config.Healthcheck.Test;
      for (const port of [ports.api, ports.worker]) {
        const probe = check.map((word) => word.replace('9464', String(port)));
        await until(() =>
          container.execConfined(probe).then(
            () => true,
            () => false,
          ),
        );
      }
      const answer = await fetch(`http://127.0.0.1:${apiPort}/v1/charges`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${created.developerKey}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ apiKey: created.consumerKey, tool: 'search', amount: 0.02 }),
      });
      assert.equal(answer.status, 201, await answer.clone().text());
      assert.equal(((await answer.json()) as { balance: number }).balance, 0.98);
    } finally {
      await endsWell(api);
      await endsWell(worker);
    }
    const parts = 'schema,balances,charges,holds,budgets,earnings,audit-log';
    await container.execConfined([...container.config.Entrypoint, 'doctor', '--only', parts], env);
  });
});

async function endsWell(running: Running): Promise<void> {
  process.kill(running.pid, 'SIGTERM');
  assert.equal(await running.exited, 0, running.output());
}
