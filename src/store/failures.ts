/** Classifies database errors. In doubt the outcome is unknown, because a wrong guess would charge twice. */
import { DatabaseError } from 'pg';
import {
  BackendTerminatedError,
  BackendTerminatedUnexpectedlyError,
  ConnectionError,
} from 'slonik';
import { PoolBusyError } from './bounded-pool.ts';

export type StatementFailure =
  /** Nothing happened: no connection, or rolled back for lack of a lock, time or memory. */
  | 'not_executed'
  /** Rolled back because of its data. */
  | 'rejected'
  /** The connection broke after the statement was sent: it may have committed. */
  | 'unknown';

/** Classes of SQLSTATE that end the session, so the commit may have happened. */
const SESSION_LOST = /^(08|57P|58|XX)/;
/**
 * Serialization and deadlock, lock not available, canceled (statement_timeout), out of resources, read-only,
 * and idle in its transaction for too long, as after a process or its machine stood still: the COMMIT never
 * arrived.
 */
const ROLLED_BACK_FOR_NOW = /^(40|53|55P03|57014|25006|25P03)/;

/** The driver passes errors of its socket on as they are, when a network resets it or no longer leads to the server. */
const SOCKET_LOST = new Set([
  'ECONNABORTED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'EPIPE',
  'ETIMEDOUT',
]);

const LOCK_NOT_AVAILABLE = '55P03';
const UNDEFINED_TABLE = '42P01';
const UNDEFINED_SCHEMA = '3F000';

export function classifyFailure(error: unknown, isSent: boolean): StatementFailure {
  if (!isSent) return 'not_executed';
  const state = sqlStateOf(error);
  if (state === undefined || SESSION_LOST.test(state)) return 'unknown';
  return ROLLED_BACK_FOR_NOW.test(state) ? 'not_executed' : 'rejected';
}

/** There was no connection, so nothing was sent to Postgres. Of a driver whose own errors do not say so. */
export class NotConnectedError extends Error {
  override readonly name = 'NotConnectedError';
}

/** The connection broke during a statement, which may have committed. */
export function isConnectionLost(error: unknown): boolean {
  return (
    error instanceof BackendTerminatedError ||
    error instanceof BackendTerminatedUnexpectedlyError ||
    isSocketLost(error)
  );
}

function isSocketLost(error: unknown): boolean {
  return (
    error instanceof Error &&
    'syscall' in error &&
    (error.syscall === 'read' || error.syscall === 'write') &&
    'code' in error &&
    SOCKET_LOST.has(String(error.code))
  );
}

/** Postgres cannot be reached, or rolled the statement back for a temporary reason: try again later. */
export function isDatabaseUnavailable(error: unknown): boolean {
  return (
    error instanceof ConnectionError ||
    error instanceof PoolBusyError ||
    error instanceof NotConnectedError ||
    isConnectionLost(error) ||
    classifyFailure(error, true) === 'not_executed'
  );
}

/** Errors of a network that may pass: what refuses connections may be restarting. */
const NETWORK_AWAY = new Set([...SOCKET_LOST, 'ECONNREFUSED', 'EAI_AGAIN']);
/** Postgres starts, stops or has no connection to spare; it ended the session. */
const SERVER_AWAY = /^(08|53|57P)/;
/** Errors of the driver, which have no code. */
const DRIVER_AWAY =
  /^(Connection terminated|Client has encountered a connection error|timeout expired|Query read timeout)/;

/**
 * Postgres cannot be reached for now. Not for a wrong password, database or name of a host, which waiting
 * does not fix.
 */
export function isDatabaseAway(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    const code = 'code' in at ? String(at.code) : '';
    if (NETWORK_AWAY.has(code) || SERVER_AWAY.test(code) || DRIVER_AWAY.test(at.message))
      return true;
  }
  return false;
}

/** The statement timed out waiting for a row that another transaction has locked, and was rolled back. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === LOCK_NOT_AVAILABLE;
}

/** A table of the statement is not there: dropped, or moved to another schema. */
export function isTableMissing(error: unknown): boolean {
  return sqlStateOf(error) === UNDEFINED_TABLE;
}

/** Nobody has migrated this database, or it is not Farebox's. */
export function lacksSchema(error: unknown): boolean {
  return isTableMissing(error) || sqlStateOf(error) === UNDEFINED_SCHEMA;
}

/**
 * The SQLSTATE with which Postgres answered, which Slonik keeps as the cause of its own error. Other errors have codes
 * that look alike, such as EPIPE.
 */
function sqlStateOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof DatabaseError) return at.code;
  }
  return undefined;
}
