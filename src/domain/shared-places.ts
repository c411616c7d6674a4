/**
 * The places of a worker for calls of agents, or of webhook endpoints. An account may hold as many as are free, so
 * accounts whose agents hang leave places for the others: one alone takes half of them, two take a third each. Any
 * number of them leave some to those whose last call did not hang.
 */

/** How many accounts whose calls hung are remembered. Those that hung longest ago are forgotten first. */
const REMEMBERED_MAX = 10_000;

export class SharedPlaces {
  #free: number;
  /** For accounts whose last call did not hang. */
  readonly #reserved: number;
  readonly #held = new Map<string, number>();
  /** The accounts whose last call hung. */
  readonly #hung = new Set<string>();

  constructor(places: number, reserved: number) {
    this.#free = places;
    this.#reserved = reserved;
  }

  /** Whether the account got a place. It must then call `giveBack` when its call is done. */
  take(accountId: string): boolean {
    const held = this.#held.get(accountId) ?? 0;
    const open = this.#hung.has(accountId) ? this.#free - this.#reserved : this.#free;
    if (held >= open) return false;
    this.#free -= 1;
    this.#held.set(accountId, held + 1);
    return true;
  }

  /** `hung`: the call held its place for long, and had no answer. */
  giveBack(accountId: string, { hung }: { readonly hung: boolean }): void {
    const held = this.#held.get(accountId) ?? 0;
    this.#free += 1;
    if (held > 1) this.#held.set(accountId, held - 1);
    else this.#held.delete(accountId);
    this.#hung.delete(accountId);
    if (hung) this.#hung.add(accountId);
    const [oldest] = this.#hung;
    if (this.#hung.size > REMEMBERED_MAX && oldest !== undefined) this.#hung.delete(oldest);
  }
}
