/**
 * Keeps a journal to one lease: a file beside it names the process that uses it. The file of a process that has ended
 * is replaced. Processes of other containers and machines cannot be seen, so they count as ended.
 */
import { readFileSync, unlinkSync, writeFileSync } from 'node:fs';

/** Returns what ends the use. It is synchronous, so that no other lease comes in between. */
export function lockJournal(path) {
  const lock = `${path}.lock`;
  const owner = JSON.stringify({ pid: process.pid, start: startOf(process.pid) });
  const found = contentOf(lock);
  if (found !== undefined) {
    const { pid, start } = parsed(found);
    if (isRunning(pid, start)) {
      throw new TypeError(
        `Farebox: the process ${pid} uses the journal ${path}. Close its lease first. ` +
          `If the process has no lease, delete ${lock}`,
      );
    }
    unlinkSync(lock);
  }
  writeFileSync(lock, owner, { flag: 'wx', mode: 0o600 });
  return () => {
    if (contentOf(lock) === owner) unlinkSync(lock);
  };
}

function contentOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Without a number, when its process ended while it wrote it. */
function parsed(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** Another process may have its number since then, for example after a restart of its container. */
function isRunning(pid, start) {
  const current = startOf(pid);
  if (current !== undefined && start !== undefined) return current === start;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** When the process started, by Linux; undefined elsewhere, and if there is no such process. */
function startOf(pid) {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field, in parentheses, may contain spaces.
    const [state, ...others] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' ? 'ended' : `${boot} ${others[18]}`;
  } catch {
    return undefined;
  }
}
