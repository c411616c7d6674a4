/**
 * Names of tools that are charged before they are registered: each gets a row before its first charge. One statement at
 * a time writes all names that arrived meanwhile, so that a flood of new names takes one connection.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Database } from '../store/database.ts';
import { noteToolNames, type ToolName } from '../store/earnings/tools.ts';

/** Names in one statement, which then takes about 10 ms. */
const NAMES_MAX = 1_000;
/** How long new names of a developer that has too many are refused without asking the database. */
const FULL_MS = 1_000;

interface Waiting {
  readonly tool: ToolName;
  readonly resolve: (isKnown: boolean) => void;
  readonly reject: (error: unknown) => void;
}

export class ToolNames {
  readonly #database: Database;
  /** Developers with too many names, and until when this is assumed without asking. */
  readonly #full = new Map<string, number>();
  #waiting: Waiting[] = [];
  #isWriting = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Resolves to false when the developer has too many unregistered names. */
  note(tool: ToolName): Promise<boolean> {
    if ((this.#full.get(tool.developerId) ?? 0) > performance.now()) return Promise.resolve(false);
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
    const distinct = new Map(batch.map(({ tool }) => [nameOf(tool), tool]));
    const known = new Set(
      (await noteToolNames(this.#database, [...distinct.values()])).map(nameOf),
    );
    const now = performance.now();
    for (const [developerId, until] of this.#full) if (until <= now) this.#full.delete(developerId);
    for (const { tool, resolve } of batch) {
      const isKnown = known.has(nameOf(tool));
      if (!isKnown) this.#full.set(tool.developerId, now + FULL_MS);
      resolve(isKnown);
    }
  }
}

/** The key of a tool in memory. */
export const nameOf = ({ developerId, name }: ToolName) => `${developerId} ${name}`;
