/**
 * Counts each developer's refused requests since the process started, by tool and code. Bounded: developers choose the
 * names of tools, so a developer's pairs beyond its share are counted together, and so are all developers after the
 * first two hundred.
 */
import type { ErrorCode } from '../domain/errors.ts';

export interface RefusalCount {
  readonly developerId: string;
  /** Empty: the refusal concerns no registered tool. */
  readonly tool: string;
  readonly code: ErrorCode;
  readonly count: number;
}

const OTHER = '(other)';
const DEVELOPERS_MAX = 200;
/** Pairs of a tool and a code, per developer. */
const PAIRS_MAX = 50;

export class RefusalCounts {
  readonly #byDeveloper = new Map<string, Map<string, RefusalCount>>();

  add(developerId: string, tool: string, code: ErrorCode): void {
    const known = this.#byDeveloper.has(developerId) || this.#byDeveloper.size < DEVELOPERS_MAX;
    const developer = known ? developerId : OTHER;
    const pairs = this.#byDeveloper.get(developer) ?? new Map<string, RefusalCount>();
    this.#byDeveloper.set(developer, pairs);
    const isKnown = pairs.has(`${code} ${tool}`) || pairs.size < PAIRS_MAX;
    const counted = isKnown ? tool : OTHER;
    const pair = `${code} ${counted}`;
    const count = (pairs.get(pair)?.count ?? 0) + 1;
    pairs.set(pair, { developerId: developer, tool: counted, code, count });
  }

  list(): RefusalCount[] {
    return [...this.#byDeveloper.values()].flatMap((pairs) => [...pairs.values()]);
  }
}
