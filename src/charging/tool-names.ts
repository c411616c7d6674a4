/**
 * Names of tools that are charged before they are registered: each gets a row before its first charge. One statement at
 * a time writes all names that arrived meanwhile, so that a flood of new names takes one connection. One
 * developer's names are written at a limited rate, so that the flood leaves most of the database's time to
 * others.
 */
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../store/database.ts';
import { noteToolNames, UNREGISTERED_MAX, type ToolName } from '../store/tools/tools.ts';
import { delayRefusal } from './delay-refusal.ts';

/** Names in one statement, which then takes about 10 ms. */
const NAMES_MAX = 1_000;
/** How long new names of a developer that has too many are refused without asking the database. */
const FULL_MS = 1_000;

/** New names of a developer that are written at once. The others follow at this interval, twenty in a statement. */
const BURST = 50;
const INTERVAL_MS = 2;
const STATEMENT_INTERVAL_MS = 20 * INTERVAL_MS;
/**
 * As long as all names that a developer may leave unregistered take. A name that would wait longer is refused
 * soon anyway, and in less than the client's timeout of 5 s.
 */
const WAIT_MS_MAX = UNREGISTERED_MAX * INTERVAL_MS;

interface Waiting {
  readonly tool: ToolName;
  readonly resolve: (isKnown: boolean) => void;
  readonly reject: (error: unknown) => void;
}

export class ToolNames {
  readonly #database: Database;
  /** Developers with too many names, and until when this is assumed without asking. */
  readonly #full = new Map<string, number>();
  /** When the turn of a developer's next name is. The first `BURST` names do not wait for theirs. */
  readonly #nextAt = new Map<string, number>();
  /** Names that wait, or are being written. */
  readonly #pending = new Map<string, Promise<boolean>>();
  #waiting: Waiting[] = [];
  #isWriting = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Resolves to false when the developer has too many unregistered names. */
  note(tool: ToolName): Promise<boolean> {
    const name = nameOf(tool);
    const pending = this.#pending.get(name);
    if (pending) return pending;
    const noted = this.#note(tool).finally(() => this.#pending.delete(name));
    this.#pending.set(name, noted);
    return noted;
  }

  async #note(tool: ToolName): Promise<boolean> {
    if (!this.#isFull(tool)) await this.#waitForTurn(tool.developerId);
    const isKnown = !this.#isFull(tool) && (await this.#enqueue(tool));
    if (!isKnown) await delayRefusal();
    return isKnown;
  }

  async #waitForTurn(developerId: string): Promise<void> {
    const now = performance.now();
    if (!this.#nextAt.has(developerId)) this.#forgetIdle(now);
    const at = Math.max(now, this.#nextAt.get(developerId) ?? now);
    const waitMs = at - now - BURST * INTERVAL_MS;
    if (waitMs >= WAIT_MS_MAX) return delay(WAIT_MS_MAX);
    this.#nextAt.set(developerId, at + INTERVAL_MS);
    if (waitMs > 0) await delay(roundUp(now + waitMs, STATEMENT_INTERVAL_MS) - now);
  }

  #forgetIdle(now: number): void {
    for (const [developerId, at] of this.#nextAt) if (at <= now) this.#nextAt.delete(developerId);
  }

  #isFull({ developerId }: ToolName): boolean {
    return (this.#full.get(developerId) ?? 0) > performance.now();
  }

  #enqueue(tool: ToolName): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ tool, resolve, reject });
      if (!this.#isWriting) void this.#write();
    });
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      // Names requested in one turn of the event loop are written together.
      await nextTurn();
      const batch = this.#waiting.splice(0, NAMES_MAX);
      try {
        await this.#writeBatch(batch);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isWriting = false;
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    const names = batch.map(({ tool }) => tool);
    const known = new Set((await noteToolNames(this.#database, names)).map(nameOf));
    const now = performance.now();
    for (const [developerId, until] of this.#full) if (until <= now) this.#full.delete(developerId);
    for (const { tool, resolve } of batch) {
      const isKnown = known.has(nameOf(tool));
      if (!isKnown) this.#full.set(tool.developerId, now + FULL_MS);
      resolve(isKnown);
    }
  }
}

function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}

/** The key of a tool in memory. */
export const nameOf = ({ developerId, name }: ToolName) => `${developerId} ${name}`;
