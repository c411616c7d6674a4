/** Runs one of our commands for a start, which shows what the command says beside its result. */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { CLI, type Context, type Settings } from './parts.ts';

/** Before the lines that are ours. */
const OURS = 'farebox: ';
/**
 * A command that fails ends when it has said why. If it keeps running, it printed a warning, or what it is
 * waiting for.
 */
const WARNING_AFTER_MS = 1_000;

/** Runs the command to its end and returns its output. Throws with its error when it fails. */
export async function farebox(
  { env, progress }: Pick<Context, 'env' | 'progress'>,
  settings: Settings,
  ...args: readonly string[]
): Promise<string> {
  // By the IPC channel, it ends when the start ends first, however that happens.
  const child = spawn(process.execPath, [CLI, ...args], {
    env: { ...env, ...settings },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  }) as ChildProcessByStdio<null, Readable, Readable>;
  const ended = once(child, 'close');
  let said = '';
  let timer: NodeJS.Timeout | undefined;
  const showWarnings = () => {
    for (const line of said.split('\n'))
      if (line.startsWith(OURS)) progress.line(line.slice(OURS.length));
    said = '';
  };
  child.stderr.on('data', (chunk) => {
    said += String(chunk);
    timer ??= setTimeout(() => {
      timer = undefined;
      showWarnings();
    }, WARNING_AFTER_MS);
  });
  try {
    const [stdout, [code, signal]] = await Promise.all([text(child.stdout), ended]);
    if (code !== 0) {
      const why = said.trim().replace(OURS, '');
      throw new Error(why || `farebox ${args[0]} ended with ${signal ?? code}`);
    }
    showWarnings();
    return stdout;
  } finally {
    clearTimeout(timer);
  }
}
