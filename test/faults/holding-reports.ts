/** What a process that holds money reports about its steps, line by line. */
export const HOLD_MICROS = 10_000;
/** Short, so that what a killed process held is soon given back. */
export const EXPIRES_IN_SECONDS = 3;

export interface Capture {
  readonly holdId: string;
  readonly micros: number;
  readonly final: boolean;
  /** The idempotency key. */
  readonly key: string;
}

export type Report =
  | { readonly step: 'held'; readonly holdId: string }
  | ({ readonly step: 'capturing' } & Capture)
  | ({ readonly step: 'captured'; readonly chargeId: string } & Capture)
  | { readonly step: 'refused'; readonly code: string };
