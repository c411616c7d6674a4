/**
 * What a failed flush means for its charges. Anything that is not certain is `unknown`: an answer that
 * claims too much would charge twice or lose a charge.
 */
export type FlushFailure =
  /** Nothing happened: no connection, or the whole statement was rolled back for want of a lock or time. */
  | 'not_executed'
  /** The statement was rolled back because of what it was given. */
  | 'rejected'
  /** The line broke after the statement was sent: it may have committed. */
  | 'unknown';

/** Classes of SQLSTATE after which the session is gone, and so the commit may have happened. */
const SESSION_LOST = /^(08|57P|58|XX)/;
/** Serialization and deadlock, lock not available, cancelled (statement_timeout), out of resources. */
const ROLLED_BACK_FOR_NOW = /^(40|53|55P03|57014)/;

export function failureOf(error: unknown, isSent: boolean): FlushFailure {
  if (!isSent) return 'not_executed';
  const state = sqlStateOf(error);
  if (state === undefined || SESSION_LOST.test(state)) return 'unknown';
  return ROLLED_BACK_FOR_NOW.test(state) ? 'not_executed' : 'rejected';
}

/** The SQLSTATE of a database error, which Slonik keeps as the cause of its own. */
export function sqlStateOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string' && /^[0-9A-Z]{5}$/.test(at.code))
      return at.code;
  }
  return undefined;
}
