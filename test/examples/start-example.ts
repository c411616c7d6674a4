/** Starts an example that serves, as its README does. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const FOLDER = join(import.meta.dirname, '../../examples');

/** Resolves with the URL that it prints when it is ready. */
export async function startExample(
  file: string,
  env: Readonly<Record<string, string>>,
): Promise<{ child: ChildProcess; url: URL }> {
  const child = spawn(process.execPath, [join(FOLDER, file)], {
    env: { ...env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), 'line'),
    once(child, 'exit').then(([code]) => assert.fail(`${file} ended with ${code}`)),
  ])) as [string];
  const [url] = /http:\S+/.exec(line) ?? assert.fail(`no URL in "${line}"`);
  return { child, url: new URL(url) };
}
