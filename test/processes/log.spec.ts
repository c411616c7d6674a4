/** The log of a process: a full disk costs lines, not charges, and strangers' data stays out of it. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, createReadStream, openSync, writeSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openPool } from '../../src/console/pool.ts';
import { rotateLog } from '../../src/embedded/child.ts';
import { createLog } from '../../src/processes/log.ts';
import { sql } from '../../src/store/database.ts';
import { openTestLedger } from '../support/ledger.ts';
import { until } from '../support/stack.ts';

const LOG = new URL('../../src/processes/log.ts', import.meta.url).href;
const run = promisify(execFile);

/** A program that logs. */
const programOf = (statements: string) => [
  '--input-type=module',
  '-e',
  `import { createLog } from '${LOG}'; const log = createLog('test', 'info'); ${statements}`,
];

describe('the log of a process', () => {
  it('neither ends the process nor delays it when the disk is full', async function () {
    if (process.platform !== 'linux') this.skip();
    const full = openSync('/dev/full', 'w');
    const child = spawn(
      process.execPath,
      programOf(`for (let n = 0; n < 1000; n += 1) log.info('lost'); process.exitCode = 7;`),
      { stdio: ['ignore', full, 'inherit'] },
    );
    closeSync(full);
    const code = await new Promise((resolve) => child.once('exit', resolve));
    assert.equal(code, 7);
  });

  it('cuts no line when its reader is slow, and counts those that do not fit', async function () {
    if (process.platform !== 'linux') this.skip();
    const folder = await mkdtemp(join(tmpdir(), 'farebox-log-'));
    const pipe = join(folder, 'pipe');
    await run('mkfifo', [pipe]);
    const writer = openSync(pipe, 'r+');
    // A first look at process.stdout makes writes return when the pipe is full.
    const child = spawn(
      process.execPath,
      programOf(`
        process.stdout;
        let logged = 0;
        for (; logged < 20; logged += 1) log.error('long '.repeat(2000));
        process.on('message', () => { log.error('short'); logged += 1; process.send(logged); });
        process.send(logged);
      `),
      { stdio: ['ignore', writer, 'inherit', 'ipc'] },
    );
    await once(child, 'message');
    const reader = createReadStream(pipe, 'utf8');
    let text = '';
    reader.on('data', (chunk) => (text += chunk));
    await until(async () => {
      child.send('log');
      const [logged] = await once(child, 'message');
      const lines = text.split('\n').slice(0, -1);
      const read = lines.map((line) => JSON.parse(line) as { msg: string; dropped?: number });
      const written = read.filter(({ msg }) => /^(long|short)/.test(msg)).length;
      const dropped = read.reduce((sum, each) => sum + (each.dropped ?? 0), 0);
      return dropped > 0 && written + dropped === logged;
    });
    closeSync(writer);
    child.disconnect();
    await once(reader, 'close');
    await rm(folder, { recursive: true });
  });

  it('keeps type, message, stack and code of an error, limited in length, and no request data', async () => {
    const { stdout } = await run(
      process.execPath,
      programOf(`
        try { new URL('http://[' + 'sent'.repeat(10_000)); } catch (err) { log.error({ err }, 'a'); }
        log.error({ err: new Error('long '.repeat(10_000)) }, 'b');
      `),
    );
    assert.ok(!stdout.includes('sentsent'));
    const [bad, long] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)) as [
      { err: Record<string, string> },
      { err: Record<string, string> },
    ];
    assert.equal(bad.err['code'], 'ERR_INVALID_URL');
    assert.match(bad.err['stack'] ?? '', /Invalid URL/);
    assert.equal(long.err['message']?.length, 4_000);
    assert.ok(stdout.length < 20_000);
  });

  it('leaves out an address that PostgreSQL repeats when it refuses a row', async () => {
    const ledger = await openTestLedger();
    const folder = await mkdtemp(join(tmpdir(), 'farebox-log-'));
    const file = join(folder, 'log');
    const fd = openSync(file, 'w');
    const log = createLog('test', 'info', { fd });
    const pool = openPool(ledger.url, log, 'library');
    try {
      for (const id of [randomUUID(), randomUUID()]) {
        const text =
          'insert into console.users (id, name, email, email_verified) values ($1, $2, $3, false)';
        await pool
          .query(text, [id, 'A', 'taken@example.com'])
          .catch((err: unknown) => log.error({ err }, 'pool'));
        await ledger.database
          .query(
            sql.typeAlias('nothing')`
              insert into console.users (id, name, email, email_verified)
              values (${randomUUID()}, 'A', ${'taken-too@example.com'}, false)
            `,
          )
          .catch((err: unknown) => log.error({ err }, 'database'));
      }
    } finally {
      await pool.end();
      await ledger.drop();
      closeSync(fd);
    }
    const text = await readFile(file, 'utf8');
    await rm(folder, { recursive: true });
    assert.match(text, /users_email_unique/);
    assert.doesNotMatch(text, /taken/);
    assert.equal(text.trim().split('\n').length, 2);
  });

  it('leaves out and counts what is too much in a second, and keeps room for errors', async () => {
    const { stdout } = await run(
      process.execPath,
      programOf(`
        for (let n = 0; n < 10_000; n += 1) log.warn('refused '.repeat(10));
        log.error('broken');
        await new Promise((resolve) => setTimeout(resolve, 1_001));
        log.info('later');
      `),
      { maxBuffer: 10_000_000 },
    );
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
    const written = lines.filter(({ msg }) => String(msg).startsWith('refused')).length;
    const leftOut = lines.reduce((sum, each) => sum + Number(each['leftOut'] ?? 0), 0);
    assert.equal(written + leftOut, 10_000);
    // The loop may touch two seconds.
    assert.ok(stdout.length < 2 * 262_144, `${stdout.length} bytes`);
    assert.ok(lines.some(({ msg }) => msg === 'broken'));
    assert.equal(lines.at(-1)?.['msg'], 'later');
  });

  it('is rotated when it has grown large, while the process continues', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'farebox-log-'));
    const file = join(folder, 'api.log');
    const writer = openSync(file, 'a');
    writeSync(writer, 'x'.repeat(10_000_001));
    rotateLog(file);
    writeSync(writer, 'later\n');
    assert.equal(await readFile(file, 'utf8'), 'later\n');
    assert.equal((await stat(`${file}.1`)).size, 10_000_001);
    rotateLog(file);
    assert.equal(await readFile(file, 'utf8'), 'later\n');
    closeSync(writer);
    await rm(folder, { recursive: true });
  });
});
