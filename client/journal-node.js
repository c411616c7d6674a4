/**
 * A file with the calls that are decided and not settled yet. Lines are appended and synced in groups: those
 * that arrive while one group is written are the next group. Only one lease uses a file at a time:
 * another one would settle its calls and release its money.
 */
import { open, readFile, realpath, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { lockJournal } from './journal-lock.js';

/** A smaller file is not compacted. */
const COMPACTED_BYTES_MIN = 1_000_000;

export async function openJournal(path) {
  // Creates it. Metadata may be personal data.
  await (await open(path, 'a', 0o600)).close();
  const real = await realpath(path);
  const unlock = lockJournal(real);
  try {
    const content = await readFile(real);
    return new Journal(real, await open(real, 'a'), content, unlock);
  } catch (error) {
    unlock();
    throw error;
  }
}

class Journal {
  #path;
  #file;
  #unlock;
  /** By lease and number, the calls in the file that are not settled. */
  #calls;
  /** The length of the file up to the last line that was synced. */
  #bytes;
  #waiting = [];
  #isWriting = false;
  /** Whether a failed write may have left something after that line. */
  #isTorn = false;
  #compactedAt = COMPACTED_BYTES_MIN;
  /** Whether a crash may bring back the file that was replaced. */
  #isReplacing = false;
  #written = Promise.resolve();

  constructor(path, file, content, unlock) {
    this.#path = path;
    this.#file = file;
    this.#unlock = unlock;
    this.#bytes = content.lastIndexOf('\n') + 1;
    this.#isTorn = this.#bytes < content.length;
    this.#calls = unsettledIn(content.toString());
  }

  /** By lease, the calls that an earlier process has not settled. */
  get unsettled() {
    const found = [...this.#calls].map(([leaseId, entries]) => [leaseId, [...entries.values()]]);
    return found.filter(([, entries]) => entries.length > 0);
  }

  /** Resolves when the line is on the disk. */
  write(value) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ value, line: `${JSON.stringify(value)}\n`, resolve, reject });
      if (!this.#isWriting) this.#written = this.#writeAll();
    });
  }

  /** Not waited for: at worst, a call is settled again, which charges nothing. */
  settled(range) {
    this.write(range).catch(() => {});
  }

  /** Empties the file, after what is being written, unless a call in it is unsettled still. */
  async tidy() {
    await this.#written;
    if (this.#calls.size > 0) return;
    await this.#file.truncate(0);
    this.#bytes = 0;
  }

  async close() {
    await this.#written;
    try {
      await this.#file.close();
    } finally {
      this.#unlock();
    }
  }

  /** The calls of a group that was not written are refused, so the next process must not find them. */
  async #append(text) {
    if (this.#isReplacing) await this.#syncFolder();
    if (this.#isTorn) await this.#cut();
    this.#isTorn = true;
    try {
      await this.#file.appendFile(text);
      await this.#file.datasync();
    } catch (error) {
      await this.#cut().catch(() => {});
      throw error;
    }
    this.#isTorn = false;
    this.#bytes += Buffer.byteLength(text);
  }

  async #cut() {
    await this.#file.truncate(this.#bytes);
    await this.#file.datasync();
    this.#isTorn = false;
  }

  /** A new file with the unsettled calls takes the place of this one. Until then, this one is whole. */
  async #compact() {
    this.#compactedAt = this.#bytes * 2;
    const text = [...this.#calls].flatMap(linesOf).join('');
    const path = `${this.#path}.new`;
    const file = await open(path, 'a', 0o600);
    try {
      await file.truncate(0);
      await file.appendFile(text);
      await file.sync();
      await rename(path, this.#path);
    } catch (error) {
      await file.close();
      throw error;
    }
    const old = this.#file;
    this.#file = file;
    this.#bytes = Buffer.byteLength(text);
    this.#compactedAt = Math.max(COMPACTED_BYTES_MIN, this.#bytes * 2);
    this.#isTorn = false;
    this.#isReplacing = true;
    await old.close();
  }

  /** Windows cannot open a folder, and needs no such sync. */
  async #syncFolder() {
    if (process.platform !== 'win32') {
      const folder = await open(dirname(this.#path));
      try {
        await folder.sync();
      } finally {
        await folder.close();
      }
    }
    this.#isReplacing = false;
  }

  async #writeAll() {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        await this.#append(group.map(({ line }) => line).join(''));
        for (const { value, resolve } of group) {
          apply(this.#calls, value);
          resolve();
        }
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
      // Without it, the file is only longer.
      if (this.#bytes > this.#compactedAt) await this.#compact().catch(() => {});
    }
    this.#isWriting = false;
  }
}

/** The last line may be torn: its call was never answered. */
function unsettledIn(text) {
  const calls = new Map();
  for (const line of text.split('\n')) apply(calls, parsed(line) ?? []);
  return calls;
}

/** A line has a call, or the first and the last number of those that are settled. */
function apply(calls, [leaseId, entry, to]) {
  if (leaseId === undefined) return;
  const entries = calls.get(leaseId) ?? new Map();
  if (typeof entry === 'object') entries.set(entry.sequence, entry);
  else for (let n = entry; n <= to; n += 1) entries.delete(n);
  if (entries.size > 0) calls.set(leaseId, entries);
  else calls.delete(leaseId);
}

function linesOf([leaseId, entries]) {
  return [...entries.values()].map((entry) => `${JSON.stringify([leaseId, entry])}\n`);
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
