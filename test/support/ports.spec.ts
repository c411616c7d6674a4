/** Ports that tests of several processes choose at once. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { choosePort } from './ports.ts';

const MODULE = join(import.meta.dirname, 'ports.ts');
/** The ports that each chooses, out of 10,000: without reservations, several would be chosen twice. */
const EACH = 200;

describe('ports for the servers of tests', () => {
  it('are different in all processes that run, before anything listens', async () => {
    const script = `
      const { choosePort } = await import(${JSON.stringify(MODULE)});
      const ports = [];
      for (let n = 0; n < ${EACH}; n += 1) ports.push(await choosePort());
      console.log(JSON.stringify(ports));
      await new Promise((resolve) => process.stdin.on('close', resolve).resume());`;
    const children = [1, 2, 3].map(() =>
      promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]),
    );
    const listed = children.map(
      ({ child }) =>
        new Promise<number[]>((resolve) => {
          child.stdout?.once('data', (text) => resolve(JSON.parse(String(text)) as number[]));
        }),
    );
    const ports = (await Promise.all(listed)).flat();
    for (let n = 0; n < EACH; n += 1) ports.push(await choosePort());
    assert.equal(new Set(ports).size, ports.length);
    for (const { child } of children) child.stdin?.end();
    await Promise.all(children);
  });
});
