/**
 * How long a top-up waits for a report before it asks the processor: each time eight times as long as before, so an
 * unpaid checkout costs five questions in its day. Reconciliation finds a payment whose report was lost.
 */
export const ASK_MS_MAX = 86_400_000;
export const ASK_FACTOR = 8;
