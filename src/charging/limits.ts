/**
 * The limits of the charge path: batch size, queue length, waiting time, and how long a repeated request is recognized.
 */
import { DAY_MS } from '../domain/durations.ts';

/**
 * Charge connections of one API process. While one commit waits for the disk, the other lane works. An API process that
 * shares its port has sibling processes for that.
 */
export const LANES = { alone: 2, besideOthers: 1 } as const;

/**
 * In addition: one lane decides charge by charge, or repays debts from what holds release, and one waits for locked
 * consumers.
 */
export const EXCEPTION_LANES = 2;

/** Connections for leases. A settlement is a transaction, and has up to a thousand charges. */
export const LEASE_LANES = 2;
/** How long a settlement waits for one of them. Its client sends it again. */
export const LEASE_WAIT_MS_MAX = 2_000;

/** Charges in one statement. A larger batch makes every charge in it wait longer, and gains little beyond a hundred. */
export const BATCH_MAX = 200;

/**
 * The charges in one statement for each waiting developer, while others have few (flush-size.ts). A flush of
 * eight takes Postgres less than half a millisecond.
 */
const SHARE_MAX = 8;

/** Charges that wait in one lane. Beyond it, a charge is refused at once, so memory and waiting time stay bounded. */
const QUEUE_MAX = 20_000;

/** The part of these that one developer may fill: a developer that floods the queue leaves room for others. */
const QUEUE_MAX_BY_DEVELOPER = 5_000;

/** How long a charge may wait before it is sent. After that it is dropped unsent. */
const QUEUE_DEADLINE_MS = 5_000;

/** The same for charges and for holds. */
export const BATCHER_LIMITS = {
  batchMax: BATCH_MAX,
  shareMax: SHARE_MAX,
  queueMax: QUEUE_MAX,
  queueMaxByDeveloper: QUEUE_MAX_BY_DEVELOPER,
  deadlineMs: QUEUE_DEADLINE_MS,
} as const;

/** Below the client library's timeout of 5 s, so that callers get an answer rather than a timeout. */
export const CHARGE_STATEMENT_TIMEOUT_MS = 4_000;

/**
 * How long a flush waits for a locked consumer. Several times the duration of a commit; after that, the other consumers
 * are charged without it.
 */
export const CHARGE_LOCK_TIMEOUT_MS = 500;

/** A charge connection that stays silent for longer is closed, and another one is opened. */
export const CHARGE_SILENCE_MS_MAX = 5_000;

/** Clients are promised 60 days for an idempotency key; two more for slow retries and clocks. */
export const IDEMPOTENCY_RETENTION_MS = 62 * DAY_MS;

/**
 * When a hold is found, the ledger is asked for it again by its idempotency key, which must still be honored then: the
 * entry may wait in the queue, and the clock may jump meanwhile.
 */
export const REPLAY_DELAY_MS_MAX = 60_000;

/** How far a process's clock may differ from Postgres'. Beyond it, the process makes no charges. */
export const CLOCK_SKEW_MS_MAX = 300_000;

/**
 * How far a process's clock may jump, or Postgres' clock jump back, between two readings of Postgres' clock. Less
 * than `LATEST_BEGINNING_MS`, after which charges count as closed.
 */
export const CLOCK_JUMP_MS_MAX = 30_000;

/** How far ahead of Postgres' time charges are searched: far more than a process's clock may differ. */
export const CLOCK_AHEAD_MS_MAX = DAY_MS;

/** Keys whose owners are kept in memory. */
export const KEYS_CACHED_MAX = 25_000;

/** Nodes of budgets whose rules are kept in memory: a few for each key. */
export const BUDGETS_CACHED_MAX = 25_000;

/** The memory that they may take: one with the longest lists takes some 65 KB, most take less than 1 KB. */
export const BUDGETS_BYTES_MAX = 32 * 1024 * 1024;

/** Nodes that one query reads, at most 6 MB: the event loop and the memory are others' too. */
export const BUDGETS_LOADED_MAX = 100;

/** Tools whose prices are kept in memory. */
export const TOOLS_CACHED_MAX = 10_000;

/** Holds whose rate cards are kept in memory, for their captures. */
export const HOLD_CARDS_CACHED_MAX = 1_000;
