/** The connections of an API process to Postgres: a pool for each kind of work, so that none waits for another. */
import type { Logger } from 'pino';
import { DatabaseClock } from '../charging/database-clock.ts';
import {
  CHARGE_LOCK_TIMEOUT_MS,
  CHARGE_SILENCE_MS_MAX,
  CHARGE_STATEMENT_TIMEOUT_MS,
  EXCEPTION_LANES,
  LANES,
  LEASE_LANES,
  LEASE_WAIT_MS_MAX,
} from '../charging/limits.ts';
import type { Config } from '../config.ts';
import { createDatabase, type Database } from '../store/database.ts';
import type { Tracing } from '../tracing/tracing.ts';
import type { Patiently } from './patience.ts';

/** For reads, and for changes that nobody's charge waits for. */
const READS = {
  maxPoolSize: 8,
  usesOneCore: true,
  statementTimeoutMs: 5_000,
  silenceMsMax: 6_000,
  waitMsMax: 1_000,
} as const;
/** For keys, prices, their changes, and readiness. Charges wait for these, so they must not queue behind reads. */
const LOOK_UPS = {
  maxPoolSize: 3,
  statementTimeoutMs: 1_000,
  silenceMsMax: 2_000,
  waitMsMax: 1_000,
} as const;
/**
 * For grants and invocations: reads must not keep them from being accepted, nor may they keep charges from
 * their look-ups. A burst of them may wait longer than a read, since an invocation is done even if its answer
 * comes late: two hundred at once took more than five seconds on a busy machine.
 */
const INVOCATIONS = {
  maxPoolSize: 3,
  statementTimeoutMs: 1_500,
  silenceMsMax: 2_500,
  waitMsMax: 15_000,
} as const;

const CHARGES = {
  lockTimeoutMs: CHARGE_LOCK_TIMEOUT_MS,
  statementTimeoutMs: CHARGE_STATEMENT_TIMEOUT_MS,
  silenceMsMax: CHARGE_SILENCE_MS_MAX,
} as const;

export interface ApiPools {
  readonly lookUps: Database;
  /** For reads, and for changes that nobody's charge waits for. */
  readonly database: Database;
  readonly invocations: Database;
  readonly charges: Database;
  readonly holds: Database;
  readonly leases: Database;
}

export interface OpenedPools {
  readonly pools: ApiPools;
  /** Started. */
  readonly clock: DatabaseClock;
  /** The number of charge statements that run at once, and of hold statements too. */
  readonly laneCount: number;
}

/**
 * Opens all of them and reads the clock of Postgres, or none: open connections would keep a process alive
 * that cannot start.
 */
export async function openApiPools(
  { databaseUrl, sharesPort }: Config,
  log: Logger,
  patiently: Patiently,
  tracing: Tracing | undefined,
): Promise<OpenedPools> {
  const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message);
  const onError = warn('a connection to Postgres broke');
  const laneCount = sharesPort ? LANES.besideOthers : LANES.alone;
  const lanes = { ...CHARGES, maxPoolSize: laneCount + EXCEPTION_LANES };
  const opened: Database[] = [];
  const open = async (options: Omit<Parameters<typeof createDatabase>[1], 'onError'>) => {
    const pool = await patiently(() =>
      createDatabase(databaseUrl, { ...options, onError, tracing }),
    );
    opened.push(pool);
    return pool;
  };
  let clock: DatabaseClock | undefined;
  try {
    const lookUps = await open(LOOK_UPS);
    const started = new DatabaseClock(lookUps, warn('a problem with the clock of Postgres'));
    clock = started;
    await patiently(() => started.start());
    const pools = {
      lookUps,
      database: await open(READS),
      invocations: await open(INVOCATIONS),
      charges: await open(lanes),
      holds: await open(lanes),
      leases: await open({ ...CHARGES, maxPoolSize: LEASE_LANES, waitMsMax: LEASE_WAIT_MS_MAX }),
    };
    return { pools, clock: started, laneCount };
  } catch (error) {
    await clock?.stop();
    for (const pool of opened) await pool.end();
    throw error;
  }
}

export async function closePools(pools: ApiPools): Promise<void> {
  for (const pool of Object.values(pools)) await pool.end();
}
