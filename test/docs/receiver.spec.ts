/** The receiver of docs/webhooks.md survives clients that break off, or send without end. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { choosePort } from '../support/ports.ts';
import { until } from '../support/stack.ts';
import { blocksOf } from './pages.ts';

const ROOT = join(import.meta.dirname, '../..');
const FILE = 'receiver.mjs';

describe('the receiver of docs/webhooks.md', () => {
  let folder: string;
  let port: number;
  let receiver: ChildProcess;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-receiver-'));
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const blocks = await blocksOf('docs/webhooks.md');
    const { code } = blocks.find((block) => block.code.includes(`// ${FILE}`)) ?? assert.fail();
    port = await choosePort();
    await writeFile(join(folder, FILE), code.replaceAll(/listen\(\d+\)/g, `listen(${port})`));
    receiver = spawn(process.execPath, [FILE], { cwd: folder, stdio: 'ignore' });
    await until(answers);
  });
  after(async () => {
    receiver?.kill();
    await rm(folder, { recursive: true, force: true });
  });

  /** Whether it refuses what is not signed. */
  async function answers(): Promise<boolean> {
    const answer = await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: '{}' }).catch(
      () => undefined,
    );
    return answer?.status === 400;
  }

  async function upload(length: number, part: string): Promise<Socket> {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${part}`);
    return socket;
  }

  it('survives a body that breaks off', async () => {
    const socket = await upload(100, '{');
    socket.end();
    await once(socket.resume(), 'close');
    assert.equal(await answers(), true);
  });

  it('reads no body without end', async () => {
    const socket = await upload(10_000_000, '{'.repeat(1_000_001));
    await once(socket.resume(), 'close');
    assert.equal(await answers(), true);
  });
});
