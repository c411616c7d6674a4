/** How long a process may take to stop. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { once } from 'node:events';
import { ROOT } from '../../src/root.ts';

/** A process that has a second to stop, and runs this meanwhile. */
const stopping = (meanwhile: string) => `
  import { once } from 'node:events';
  import { pino } from 'pino';
  import { exitWithin } from './src/commands/exit-within.ts';
  exitWithin(1_000, pino());
  ${meanwhile}
`;

async function endOf(program: string) {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.write('an answer');
  const [logged, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return { logged, code: code as number };
}

describe('a process that stops', () => {
  it('exits with 1 and says so when it cannot stop in time', async () => {
    const { logged, code } = await endOf(stopping('setInterval(() => {}, 1_000);'));
    assert.match(logged, /could not stop in time/);
    assert.equal(code, 1);
  });

  it('stops in order although it stood still, and what it waits for arrived meanwhile', async () => {
    const { logged, code } = await endOf(
      stopping(`
        const arrives = once(process.stdin, 'data');
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
        await arrives;
        process.exit();
      `),
    );
    assert.deepEqual([logged, code], ['', 0]);
  });
});
