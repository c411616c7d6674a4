/**
 * A child process that reports when it is ready and does not outlive this process. On Linux the kernel ensures that
 * (the parent-death signal), so even kill -9 of this process leaves nothing behind; elsewhere our own processes notice
 * that their channel to us has closed. Each child has its own session: a terminal's Ctrl-C reaches only this process,
 * which stops the children in order.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ChildOptions {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  readonly env: Environment;
  /** The file for its standard output and error. The error of a failed start quotes its tail. */
  readonly logFile: string;
  /** `message`: the child sends `{ready: true}` over its channel. A function is polled until it returns true. */
  readonly ready: 'message' | ((pid: number) => boolean | Promise<boolean>);
  readonly readyTimeoutMs?: number;
  /** The file that gets its process id at once, so that a later start finds it even if it never becomes ready. */
  readonly pidFile?: string;
  /** The launcher before the command. By default one that has the kernel kill the child when this process dies. */
  readonly launcher?: readonly string[];
  readonly stopSignal?: NodeJS.Signals;
  /** How long it may take to stop before it is killed, in milliseconds. */
  readonly stopTimeoutMs?: number;
}

export interface Child {
  readonly name: string;
  readonly pid: number;
  /** Resolves with a description of its end when it has ended, for any reason. */
  readonly exited: Promise<string>;
  /** Stops it gracefully. Resolves when it has ended. */
  stop(): Promise<void>;
  kill(signal: NodeJS.Signals): void;
}

/** A child did not become ready. The message quotes the end of its log. */
export class ChildError extends Error {
  override readonly name = 'ChildError';
}

const LOG_BYTES_MAX = 10_000_000;
const POLL_MS = 20;

let hasParentDeathSignal: boolean | undefined;

/** The launcher that makes the kernel send the signal when this process dies. */
export function dyingWithUs(signal: 'INT' | 'TERM' | 'KILL'): readonly string[] {
  const launcher = ['setpriv', '--pdeathsig', signal];
  // The setpriv of util-linux has the option, busybox's does not, and other systems have no setpriv.
  hasParentDeathSignal ??=
    spawnSync('setpriv', [...launcher.slice(1), 'true'], { stdio: 'ignore' }).status === 0;
  return hasParentDeathSignal ? launcher : [];
}

/** Starts the process and resolves when it is ready. Otherwise stops it and throws. */
export async function startChild(options: ChildOptions): Promise<Child> {
  const { name, ready } = options;
  const log = openLog(options.logFile);
  const [file, ...args] = [...(options.launcher ?? dyingWithUs('KILL')), ...options.command];
  const child = spawn(file as string, args, {
    cwd: '/',
    env: options.env,
    detached: true,
    stdio: ['ignore', log.fd, log.fd, ...(ready === 'message' ? ['ipc' as const] : [])],
  });
  closeSync(log.fd);

  let ended: string | undefined;
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) =>
      resolve(signal ? `ended by ${signal}` : `exit code ${code}`),
    );
  }).then((how) => (ended = how));
  const rotation = setInterval(() => rotateLog(options.logFile), ROTATION_MS).unref();
  void exited.then(() => clearInterval(rotation));

  const stop = async (): Promise<void> => {
    if (ended !== undefined) return;
    child.kill(options.stopSignal ?? 'SIGTERM');
    const killer = setTimeout(() => child.kill('SIGKILL'), options.stopTimeoutMs ?? 10_000);
    await exited;
    clearTimeout(killer);
  };

  let saidReady = false;
  child.on('message', (message) => {
    if ((message as { ready?: unknown } | null)?.ready === true) saidReady = true;
  });
  const untilReady = async (): Promise<void> => {
    const deadline = Date.now() + (options.readyTimeoutMs ?? 180_000);
    for (;;) {
      const isReady =
        ready === 'message' ? saidReady : child.pid !== undefined && (await ready(child.pid));
      if (isReady && ended === undefined) return;
      if (ended !== undefined) throw new ChildError(`${name} did not start: ${ended}${log.tail()}`);
      if (Date.now() > deadline) throw new ChildError(`${name} was not ready in time${log.tail()}`);
      await Promise.race([delay(POLL_MS), exited]);
    }
  };
  try {
    if (options.pidFile && child.pid) writeFileSync(options.pidFile, String(child.pid));
    await untilReady();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    name,
    pid: child.pid as number,
    exited,
    stop,
    kill: (signal) => void child.kill(signal),
  };
}

/** How often a log's size is checked: a process may run for months. */
const ROTATION_MS = 10_000;

/** Copies a large log over the previous copy and empties it. Its writer appends, so it continues at the beginning. */
export function rotateLog(file: string): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= LOG_BYTES_MAX) return;
  try {
    copyFileSync(file, `${file}.1`);
  } catch {
    // The disk is full: discard the log rather than block everything else.
    rmSync(`${file}.1`, { force: true });
  }
  truncateSync(file);
}

/** Opens for appending. */
function openLog(file: string): { fd: number; tail: () => string } {
  mkdirSync(dirname(file), { recursive: true });
  rotateLog(file);
  const fd = openSync(file, 'a', 0o600);
  const begin = fstatSync(fd).size;
  return { fd, tail: () => readTail(file, begin) };
}

function readTail(file: string, begin: number): string {
  const fd = openSync(file, 'r');
  const { size } = fstatSync(fd);
  // The log may have been emptied since.
  const bytes = Buffer.alloc(Math.max(Math.min(size - begin, 3_000), 0));
  readSync(fd, bytes, 0, bytes.length, size - bytes.length);
  closeSync(fd);
  const text = bytes.toString().trim();
  return text === '' ? ` (it logged nothing to ${file})` : `; the end of ${file}:\n${text}`;
}
