/** Which lease may use a journal, against a service with scripted answers. */
import assert from 'node:assert/strict';
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Farebox } from '@farebox/client';
import { closeSettled } from '../support/lease-requests.ts';
import { until } from '../support/stack.ts';
import { leaseScript, type Settlement } from './lease-script.ts';
import { ScriptedService } from './scripted-service.ts';

const secretKey = 'fare_sk_test_x';
/** Larger than the number of any process. */
const NO_PROCESS = 0x7fff_ffff;
const options = { apiKey: 'fare_ck_test_x', tools: ['search'], amount: 1_000 };

describe('client: a journal', () => {
  let folder: string;
  let journal: string;
  let service: ScriptedService;
  let ends: (() => Promise<unknown>)[];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-journal-'));
    journal = join(folder, 'calls');
    service = await ScriptedService.start(leaseScript({}));
    ends = [() => rm(folder, { recursive: true, force: true }), () => service.close()];
  });
  afterEach(async () => {
    for (const end of ends.toReversed()) await end();
  });

  const settings = () => ({
    FAREBOX_URL: service.url,
    FAREBOX_SECRET_KEY: secretKey,
    LEASE: JSON.stringify({ ...options, journal }),
  });

  /** Makes calls until it is killed. */
  function startProcess() {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'lease-calls.ts')], {
      env: settings(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = once(child, 'close');
    const kill = async () => {
      child.kill('SIGKILL');
      await ended;
    };
    ends.push(kill);
    let calls = 0;
    child.stdout.on('data', () => {
      calls += 1;
    });
    const callsOrEnds = async () => {
      const before = calls;
      return until(() => (calls > before && 'calls') || (child.exitCode !== null && 'ends'));
    };
    return { pid: child.pid, callsOrEnds, kill, errors: text(child.stderr) };
  }

  it('is refused to a second process until the first one has ended', async () => {
    const first = startProcess();
    assert.equal(await first.callsOrEnds(), 'calls');
    const second = startProcess();
    assert.equal(await second.callsOrEnds(), 'ends');
    assert.match(await second.errors, new RegExp(`TypeError: .*process ${first.pid} uses`));
    assert.equal(await first.callsOrEnds(), 'calls');
    const takes = service.seen.filter(({ path }) => path === '/v1/leases');
    const ending = service.seen.filter(({ body }) => (body as Settlement | undefined)?.final);
    assert.deepEqual([takes.length, ending.length], [1, 0]);
    await first.kill();
    assert.equal(await startProcess().callsOrEnds(), 'calls');
  });

  /** Takes a lease, and closes it, when told to. */
  async function startTaker() {
    const child = fork(join(import.meta.dirname, 'lease-turns.ts'), { env: settings() });
    const ended = once(child, 'close');
    ends.push(async () => {
      child.kill('SIGKILL');
      await ended;
    });
    const said = async () => String((await once(child, 'message'))[0]);
    assert.equal(await said(), 'started');
    return () => {
      child.send('next');
      return said();
    };
  }

  it('is taken by one of several processes that find the lock of one that has ended', async () => {
    const takers = await Promise.all(Array.from({ length: 6 }, startTaker));
    for (let round = 0; round < 50; round += 1) {
      await writeFile(`${journal}.lock`, JSON.stringify({ pid: NO_PROCESS }));
      const results = await Promise.all(takers.map(async (go) => ({ go, result: await go() })));
      const taken = results.filter(({ result }) => result === 'taken');
      const refused = results.filter(({ result }) => /^TypeError: .* uses the jou/.test(result));
      assert.deepEqual([taken.length, refused.length], [1, 5], JSON.stringify(results));
      assert.equal(await taken[0]?.go(), 'closed');
      assert.deepEqual(await readdir(folder), ['calls']);
    }
  });

  const openHere = () =>
    new Farebox({ secretKey, baseUrl: service.url }).lease({ ...options, journal });

  it('has no lock once its lease is closed', async () => {
    const lease = await openHere();
    assert.ok(existsSync(`${journal}.lock`));
    await closeSettled(lease);
    assert.ok(!existsSync(`${journal}.lock`));
  });

  const leftovers: Record<string, string> = { nothing: '', 'half a line': '{"pid":', null: 'null' };
  // Elsewhere, only the number of a process is known.
  if (process.platform === 'linux') {
    leftovers['the number of a process that started at another time'] = JSON.stringify({
      pid: process.pid,
      start: 'before',
    });
  }
  for (const [what, content] of Object.entries(leftovers)) {
    it(`replaces a lock that contains ${what}`, async () => {
      await writeFile(`${journal}.lock`, content);
      await closeSettled(await openHere());
      assert.ok(!existsSync(`${journal}.lock`));
    });
  }

  it('replaces a lock after two processes were killed while they did so', async () => {
    for (const end of ['.lock', '.lock.lock', '.lock.lock.lock']) {
      await writeFile(`${journal}${end}`, JSON.stringify({ pid: NO_PROCESS }));
    }
    await closeSettled(await openHere());
    assert.deepEqual(await readdir(folder), ['calls']);
  });
});
