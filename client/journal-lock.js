/**
 * Keeps a journal to one lease: a file beside it names the process that uses it. The file of a process that has ended
 * is replaced. Processes of other containers and machines cannot be seen, so they count as ended.
 */
import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';

/** Returns what ends the use. It is synchronous, so that no other lease of the thread comes in between. */
export function lockJournal(path) {
  const lock = `${path}.lock`;
  const owner = JSON.stringify({ pid: process.pid, start: startOf(process.pid) });
  // The lock becomes a second name of this file, so nobody finds it empty or half written.
  const draft = `${lock}.${randomUUID()}`;
  writeFileSync(draft, owner, { flag: 'wx', mode: 0o600 });
  try {
    take(lock, draft, path);
  } finally {
    unlinkSync(draft);
  }
  return () => {
    if (contentOf(lock) === owner) unlinkSync(lock);
  };
}

/**
 * Only the process that has the lock of a lock removes it, so none removes one that another process has just taken. A
 * process that is killed while it does so leaves both, and the next one replaces both in the same way.
 */
function take(lock, draft, path) {
  while (!isLinked(draft, lock)) {
    const found = contentOf(lock);
    if (found === undefined) continue;
    const { pid, start } = parsed(found);
    if (isRunning(pid, start)) {
      throw new TypeError(
        `Farebox: the process ${pid} uses the journal ${path}. Close its lease first. ` +
          `If the process has no lease, delete ${lock}`,
      );
    }
    const lockOfLock = `${lock}.lock`;
    take(lockOfLock, draft, path);
    try {
      if (contentOf(lock) === found) unlinkSync(lock);
    } finally {
      unlinkSync(lockOfLock);
    }
  }
}

/** False if there is such a lock already. */
function isLinked(draft, lock) {
  try {
    linkSync(draft, lock);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Undefined if there is no such file. */
function contentOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Without a number, when the machine stopped before the text was on its disk. */
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
