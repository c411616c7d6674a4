/** A charge that could not be decided, with what is known about its outcome. */
export type ChargeFailureKind =
  /** Nothing was charged; the same request may be sent again. */
  | 'not_made'
  /** Another request with the same idempotency key is being decided; its outcome is this one's too. */
  | 'key_in_flight'
  /** The charge may have been made. Only the same idempotency key can tell. */
  | 'outcome_unknown'
  /** The charge was made, and its test amount asks for the answer of an unknown outcome. */
  | 'lost_on_demand';

export class ChargeFailure extends Error {
  override readonly name = 'ChargeFailure';
  readonly kind: ChargeFailureKind;

  constructor(kind: ChargeFailureKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}
