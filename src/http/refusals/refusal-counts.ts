/**
 * Counts each developer's refused requests since the process started, by tool and code, for the metrics. Bounded: a
 * developer's pairs beyond its share are counted together, and so are all developers after the first two hundred.
 * RefusalRecorder stores the same by hour.
 */
import type { ErrorCode } from '../../domain/errors.ts';
import { OTHER, pairOf, toolWithin } from './tool-within.ts';

export interface RefusalCount {
  readonly developerId: string;
  /** Empty: the refusal concerns no registered tool. */
  readonly tool: string;
  readonly code: ErrorCode;
  readonly count: number;
}

const DEVELOPERS_MAX = 200;

export class RefusalCounts {
  readonly #byDeveloper = new Map<string, Map<string, RefusalCount>>();

  add(developerId: string, tool: string, code: ErrorCode): void {
    const known = this.#byDeveloper.has(developerId) || this.#byDeveloper.size < DEVELOPERS_MAX;
    const developer = known ? developerId : OTHER;
    const pairs = this.#byDeveloper.get(developer) ?? new Map<string, RefusalCount>();
    this.#byDeveloper.set(developer, pairs);
    const counted = toolWithin(pairs, code, tool);
    const pair = pairOf(code, counted);
    const count = (pairs.get(pair)?.count ?? 0) + 1;
    pairs.set(pair, { developerId: developer, tool: counted, code, count });
  }

  list(): RefusalCount[] {
    return [...this.#byDeveloper.values()].flatMap((pairs) => [...pairs.values()]);
  }
}
