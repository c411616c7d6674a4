/**
 * Stops servers that a killed start left behind, on systems where the kernel does not end them with it. They are not
 * adopted: only a child process can be watched.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const KILL_AFTER_MS = 20_000;
const POLL_MS = 50;

/**
 * Stops the process if its command line names the data directory, which the caller holds. Otherwise the process id was
 * reused, after a reboot or in a new container.
 */
export async function stopLeftover(
  pid: number,
  dataDir: string,
  signal: NodeJS.Signals,
): Promise<void> {
  if (!pid) return;
  const isOurs = async () => (await commandLineOf(pid)).includes(dataDir);
  for (let waitedMs = 0; await isOurs(); waitedMs += POLL_MS) {
    if (waitedMs === 0) send(pid, signal);
    if (waitedMs === KILL_AFTER_MS) send(pid, 'SIGKILL');
    await delay(POLL_MS);
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Empty when the process does not exist or is a zombie. */
async function commandLineOf(pid: number): Promise<string> {
  if (process.platform === 'linux') {
    return readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  }
  return promisify(execFile)('ps', ['-o', 'command=', '-p', String(pid)]).then(
    ({ stdout }) => stdout,
    () => '',
  );
}
