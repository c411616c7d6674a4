/** Expiries that come soon, so that a test may await them, and yet after what a busy machine has to do before. */
const FIRST_MS = 1_500;
const LAST_MS = 150_000;

/** Does something that must be done before `expiresAt`. Again, with a later one, if that has passed meanwhile. */
export async function soonExpiring<T>(work: (expiresAt: string) => Promise<T>): Promise<T> {
  for (let ms = FIRST_MS; ; ms *= 2) {
    const expiresAtMs = Date.now() + ms;
    const isLate = () => Date.now() >= expiresAtMs && ms < LAST_MS;
    try {
      const result = await work(new Date(expiresAtMs).toISOString());
      if (!isLate()) return result;
    } catch (error) {
      if (!isLate()) throw error;
    }
  }
}
