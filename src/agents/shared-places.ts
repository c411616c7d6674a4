/**
 * The places of a worker for calls of agents. An account may hold as many as are free, so accounts whose agents hang leave
 * places for the others: one alone takes half of them, two take a third each.
 */
export class SharedPlaces {
  #free: number;
  readonly #held = new Map<string, number>();

  constructor(places: number) {
    this.#free = places;
  }

  /** Whether the account got a place. It must then call `giveBack` when its call is done. */
  take(accountId: string): boolean {
    const held = this.#held.get(accountId) ?? 0;
    if (held >= this.#free) return false;
    this.#free -= 1;
    this.#held.set(accountId, held + 1);
    return true;
  }

  giveBack(accountId: string): void {
    const held = this.#held.get(accountId) ?? 0;
    this.#free += 1;
    if (held > 1) this.#held.set(accountId, held - 1);
    else this.#held.delete(accountId);
  }
}
