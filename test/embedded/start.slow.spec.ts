/**
 * `farebox start` as users run it: a process, on a data directory that outlives it. Tests share
 * starts where their order allows, because each takes some seconds.
 */
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseEnv, promisify } from 'node:util';
import { Client } from 'pg';
import { choosePort } from '../support/ports.ts';
import { useSignInLink } from '../support/sessions.ts';
import { until } from '../support/stack.ts';

const COMMAND = join(import.meta.dirname, '../../bin/farebox');
const MODULES = join(import.meta.dirname, '../../node_modules');
/** Five programs that start together: seconds alone, over a minute on a busy machine. */
const START_TIMEOUT_MS = 400_000;

interface Launched {
  readonly process: ChildProcess;
  readonly baseUrl: string;
  readonly dataDir: string;
  output(): string;
  /** Resolves with the exit code, null after a signal. */
  readonly exited: Promise<number | null>;
}

interface Place {
  readonly dataDir: string;
  readonly port: number;
}

describe('farebox start', () => {
  let folder: string;
  let place: Place;
  let running: Launched;
  const launched: Launched[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-start-'));
    place = { dataDir: join(folder, 'data'), port: await choosePort() };
    running = await launchReady(place);
  });

  after(async () => {
    for (const { process } of launched) process.kill('SIGTERM');
    await Promise.all(launched.map(({ exited }) => exited));
    await rm(folder, { recursive: true, force: true });
  });

  function launch(
    { dataDir, port }: Place,
    env: NodeJS.ProcessEnv = {},
    ...options: readonly string[]
  ): Launched {
    const child = spawn(
      process.execPath,
      [COMMAND, 'start', '--port', String(port), '--data-dir', dataDir, ...options],
      { env: { ...cleanEnv(), ...env }, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
    const baseUrl = `http://127.0.0.1:${port}`;
    const start = { process: child, baseUrl, dataDir, output: () => output, exited };
    launched.push(start);
    return start;
  }

  async function launchReady(place: Place): Promise<Launched> {
    const start = launch(place);
    let hasEnded = false;
    void start.exited.then(() => (hasEnded = true));
    await until(
      () => {
        if (hasEnded) throw new Error(`it ended: ${start.output()}`);
        return start.output().includes('Farebox ready');
      },
      { timeoutMs: START_TIMEOUT_MS },
    ).catch((error: unknown) => {
      throw new Error(`it is not ready: ${start.output()}`, { cause: error });
    });
    return start;
  }

  it('prints a command that charges the first account when pasted', async () => {
    const command = running.output().slice(running.output().indexOf('\ncurl '));
    const { stdout } = await promisify(execFile)('sh', ['-c', command]);
    assert.equal(JSON.parse(stdout).balance, 9.95);
    assert.equal(await balanceOf(running), 9.95);
  });

  it('prints a link that signs the first account in to the console, once', async () => {
    const [link = ''] = /http\S+sign-in-link\S+/.exec(running.output()) ?? [];
    const entered = await useSignInLink(link);
    const [cookie = ''] = entered.headers.getSetCookie();
    const session = await fetch(`${running.baseUrl}/v1/session`, { headers: { cookie } });
    assert.equal(((await session.json()) as { email: string }).email, 'you@example.com');
    const page = await fetch(`${running.baseUrl}${entered.headers.get('location')}`);
    assert.match(await page.text(), /<title>Farebox<\/title>/);
    const again = await useSignInLink(link);
    assert.deepEqual(again.headers.getSetCookie(), []);
  });

  it('lets other commands use it, and tells with `env` where its parts are', async () => {
    const env = await environmentOf(place);
    assert.equal(env['BASE_URL'], running.baseUrl);
    assert.match(env['DATABASE_URL'] ?? '', /^postgres:\/\//);
    assert.match(env['TEMPORAL_ADDRESS'] ?? '', /^127\.0\.0\.1:\d+$/);
    assert.equal((await fetch(env['TEMPORAL_UI_URL'] ?? '')).status, 200);

    const created = await run('account', 'create', '--email=a@b.example', '--json', place);
    const { consumerKey } = JSON.parse(created) as { consumerKey: string };
    const answer = await fetch(`${running.baseUrl}/v1/balance`, bearer(consumerKey));
    assert.equal(answer.status, 200);
  });

  it('hides secrets from other users of the machine', async () => {
    assert.equal(await modeOf(place.dataDir), '700');
    for (const file of ['secrets.json', 'first-account.json', 'run.json']) {
      assert.equal(await modeOf(join(place.dataDir, file)), '600', file);
    }
  });

  it('refuses a second start on its data directory, and continues undisturbed', async () => {
    const second = launch({ ...place, port: await choosePort() });
    assert.equal(await second.exited, 1);
    assert.match(second.output(), /another Farebox is using .*--data-dir/);
    assert.equal(await balanceOf(running), 9.95);
  });

  it('locks the installed packages, so that no command replaces them', () => {
    const lock = new DatabaseSync(join(MODULES, '.in-use'), { timeout: 0 });
    assert.throws(() => lock.exec('begin exclusive'), /locked/);
    lock.close();
  });

  it('refuses a port in use, with the port and what to do', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await until(() => holder.listening);
    const { port } = holder.address() as AddressInfo;
    const refused = launch({ dataDir: join(folder, 'other'), port });
    assert.equal(await refused.exited, 1);
    holder.close();
    assert.match(refused.output(), new RegExp(`port ${port} is taken.*--port`));
    assert.equal(existsSync(join(folder, 'other')), false);
  });

  let beside: Launched;

  it('refuses one of two starts at once on the same port', async () => {
    const locked = join(folder, 'locked');
    await mkdir(locked, { mode: 0o700 });
    await chmod(locked, 0o700);
    const port = await choosePort();
    const both = ['one', 'two'].map((name) => launch({ dataDir: join(locked, name), port }));
    const ended: Launched[] = [];
    for (const start of both) void start.exited.then(() => ended.push(start));
    const ready = () => both.filter((start) => start.output().includes('Farebox ready'));
    await until(() => ready().length + ended.length === 2, { timeoutMs: START_TIMEOUT_MS });
    assert.equal(ready().length, 1, both.map((start) => start.output()).join('\n'));
    const [refused] = ended;
    assert.match(refused?.output() ?? '', new RegExp(`port ${port} is taken.*--port`));
    assert.equal(existsSync(refused?.dataDir ?? ''), false);
    beside = ready()[0] ?? assert.fail();
  });

  it('runs beside another one, also in a folder that only its owner may enter', async () => {
    assert.equal(await balanceOf(beside), 10);
    assert.equal(await balanceOf(running), 9.95);
    beside.process.kill('SIGTERM');
    assert.equal(await beside.exited, 0);
  });

  it('stops the parts for maintenance when the port of the simulator is taken, and says so in a line', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await until(() => holder.listening);
    const { port } = holder.address() as AddressInfo;
    const dataDir = join(folder, 'taken');
    await mkdir(dataDir, { mode: 0o700 });
    await writeFile(join(dataDir, 'ports.json'), JSON.stringify({ simulator: port }));
    const refused = launch({ dataDir, port: await choosePort() }, {}, '--maintenance');
    assert.equal(await refused.exited, 1);
    holder.close();
    assert.match(refused.output(), new RegExp(`port ${port} is taken`));
    assert.match(refused.output(), /Stopping \.\.\./);
    assert.doesNotMatch(refused.output(), /^ +at /m);
    await untilNothingIsLeft(dataDir);
  });

  it('refuses a Stripe key without a webhook secret', async () => {
    const half = launch(
      { ...place, dataDir: join(folder, 'half') },
      { STRIPE_SECRET_KEY: 'sk_test_1' },
    );
    assert.equal(await half.exited, 1);
    assert.match(half.output(), /STRIPE_WEBHOOK_SECRET must be set too/);
    assert.equal(existsSync(join(folder, 'half')), false);
  });

  it('restarts PostgreSQL when it is killed', async () => {
    const pidFile = join(place.dataDir, 'postgres', 'postmaster.pid');
    const pid = Number((await readFile(pidFile, 'utf8')).split('\n')[0]);
    process.kill(pid, 'SIGKILL');
    await until(() => running.output().includes('PostgreSQL is running again'), {
      timeoutMs: START_TIMEOUT_MS,
    });
    const balance = await until(() => balanceOf(running).catch(() => undefined));
    assert.equal(balance, 9.95);
  });

  it('leaves no process behind when it is killed, and continues with the same data', async () => {
    const before = await keptFiles(place.dataDir);
    running.process.kill('SIGKILL');
    await running.exited;
    await untilNothingIsLeft(place.dataDir);
    running = await launchReady(place);
    assert.deepEqual(await keptFiles(place.dataDir), before);
    assert.equal(await balanceOf(running), 9.95);
  });

  it('leaves no process behind after Ctrl-C', async () => {
    running.process.kill('SIGINT');
    assert.equal(await running.exited, 0);
    await untilNothingIsLeft(place.dataDir);
    await assert.rejects(environmentOf(place), /Farebox is not running/);
  });

  it('starts without an API and a worker for maintenance, and takes over what Stripe has', async () => {
    const maintained = launch(place, {}, '--maintenance');
    await until(() => maintained.output().includes('Ready for maintenance'), {
      timeoutMs: START_TIMEOUT_MS,
    });
    assert.match(await run('reconcile', '--after-restore', place), /No differences\.\n$/);
    assert.match(await run('doctor', place), /All checks passed/);
    await assert.rejects(fetch(`${maintained.baseUrl}/healthz`));
    maintained.process.kill('SIGTERM');
    assert.equal(await maintained.exited, 0);
  });

  it('creates another first account, and says so, if the database does not have the one of its keys', async () => {
    await rm(join(place.dataDir, 'postgres'), { recursive: true });
    running = await launchReady(place);
    assert.match(running.output(), /not in the database.*creates another one/);
    assert.match(running.output(), /The first account, you@example\.com, was given/);
    assert.equal(await balanceOf(running), 10);
  });

  it('refuses data of a newer release, and does not change it', async () => {
    const { DATABASE_URL } = await environmentOf(place);
    const client = new Client({ connectionString: DATABASE_URL });
    await client.connect();
    await client.query(`insert into farebox.migrations (name, hash) values ('9999_later', '')`);
    await client.end();
    running.process.kill('SIGTERM');
    await running.exited;

    const refused = launch(place);
    assert.equal(await refused.exited, 1);
    assert.match(refused.output(), /newer Farebox, which applied 9999_later/);
    await untilNothingIsLeft(place.dataDir);
  });
});

function cleanEnv(): NodeJS.ProcessEnv {
  const { PATH, HOME, XDG_CACHE_HOME } = process.env;
  return { PATH, HOME, ...(XDG_CACHE_HOME && { XDG_CACHE_HOME }) };
}

async function run(...args: readonly (string | Place)[]): Promise<string> {
  const { dataDir } = args.at(-1) as Place;
  const command = [COMMAND, ...(args.slice(0, -1) as string[]), '--data-dir', dataDir];
  return (await promisify(execFile)(process.execPath, command, { env: cleanEnv() })).stdout;
}

async function environmentOf(place: Place): Promise<Record<string, string | undefined>> {
  return parseEnv(await run('env', place));
}

async function balanceOf({ baseUrl, dataDir }: Launched): Promise<number> {
  const account = JSON.parse(await readFile(join(dataDir, 'first-account.json'), 'utf8'));
  const answer = await fetch(`${baseUrl}/v1/balance`, bearer(account.consumerKey));
  if (!answer.ok) throw new Error(`HTTP status ${answer.status}`);
  return ((await answer.json()) as { balance: number }).balance;
}

function bearer(key: string): RequestInit {
  return { headers: { Authorization: `Bearer ${key}` } };
}

async function modeOf(path: string): Promise<string> {
  const { stdout } = await promisify(execFile)('stat', ['-c', '%a', path]).catch(() =>
    promisify(execFile)('stat', ['-f', '%Lp', path]),
  );
  return stdout.trim();
}

/** What must be the same after every restart. */
async function keptFiles(dataDir: string): Promise<string[]> {
  const names = ['secrets.json', 'first-account.json'];
  return Promise.all(names.map((name) => readFile(join(dataDir, name), 'utf8')));
}

/** No process has the data directory or the start's master secret in its environment. */
async function untilNothingIsLeft(dataDir: string): Promise<void> {
  const { masterSecret } = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8'));
  await until(async () => (await processesWith(dataDir, masterSecret)).length === 0);
}

async function processesWith(...texts: readonly string[]): Promise<string[]> {
  if (process.platform !== 'linux') {
    const { stdout } = await promisify(execFile)('ps', ['-A', '-E', '-o', 'command=']);
    return stdout.split('\n').filter((line) => texts.some((text) => line.includes(text)));
  }
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry));
  const known = await Promise.all(
    pids.map(
      async (pid) =>
        (await readIfThere(`/proc/${pid}/cmdline`)) + (await readIfThere(`/proc/${pid}/environ`)),
    ),
  );
  return known.filter((text) => texts.some((part) => text.includes(part)));
}

function readIfThere(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
