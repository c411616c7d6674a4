/**
 * A file with the calls that are decided and not settled yet. Lines are appended and synced in groups: those that arrive
 * while one group is written are the next group. Only one process may use a file.
 */
import { open, readFile } from 'node:fs/promises';

/** A smaller file is not emptied while it is used. */
const EMPTIED_BYTES_MIN = 1_000_000;

export async function openJournal(path) {
  const content = await readFile(path).catch((error) => {
    if (error.code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  });
  // Metadata may be personal data.
  const file = await open(path, 'a', 0o600);
  return new Journal(file, content);
}

class Journal {
  /** By lease, the calls that an earlier process has not settled. */
  unsettled;
  #file;
  /** The length of the file up to the last line that was synced. */
  #bytes;
  #waiting = [];
  #isWriting = false;
  /** Whether a failed write may have left something after that line. */
  #isTorn = false;
  #isIdle = () => false;
  #written = Promise.resolve();

  constructor(file, content) {
    this.#file = file;
    this.#bytes = content.lastIndexOf('\n') + 1;
    this.#isTorn = this.#bytes < content.length;
    this.unsettled = unsettledIn(content.toString());
  }

  /** Resolves when the line is on the disk. */
  write(value) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ line: `${JSON.stringify(value)}\n`, resolve, reject });
      if (!this.#isWriting) this.#written = this.#writeAll();
    });
  }

  /** Not waited for: at worst, a call is settled again, which charges nothing. */
  settled(range, isIdle) {
    this.#isIdle = isIdle;
    this.write(range).catch(() => {});
  }

  /** After what is being written. */
  async empty() {
    await this.#written;
    await this.#truncate();
  }

  async #truncate() {
    await this.#file.truncate(0);
    this.#bytes = 0;
  }

  async close() {
    await this.#written;
    await this.#file.close();
  }

  /** The calls of a group that was not written are refused, so the next process must not find them. */
  async #append(text) {
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

  async #writeAll() {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        await this.#append(group.map(({ line }) => line).join(''));
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
      // Nothing is written meanwhile, so no call is lost.
      const isOver = this.#bytes > EMPTIED_BYTES_MIN && this.#waiting.length === 0;
      if (isOver && this.#isIdle()) await this.#truncate().catch(() => {});
    }
    this.#isWriting = false;
  }
}

/** The last line may be torn: its call was never answered. */
function unsettledIn(text) {
  const leases = new Map();
  for (const line of text.split('\n')) {
    const [leaseId, entry, to] = parsed(line) ?? [];
    if (leaseId === undefined) continue;
    const entries = leases.get(leaseId) ?? new Map();
    leases.set(leaseId, entries);
    if (typeof entry === 'object') entries.set(entry.sequence, entry);
    else for (let n = entry; n <= to; n += 1) entries.delete(n);
  }
  const found = [...leases].map(([leaseId, entries]) => [leaseId, [...entries.values()]]);
  return found.filter(([, entries]) => entries.length > 0);
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
