/**
 * The targets of the bench: ratios of rows of the same round, and absolute figures: waits in milliseconds, bytes and
 * memory. The report names missed targets, but they fail nothing.
 */
import { bestOf, median, type RowResult } from './rounds.ts';

export interface Results {
  readonly rows: readonly RowResult[];
  /** Figures other than rates. Undefined when not measured. */
  readonly bytesPerCharge?: number | undefined;
  readonly apiPeakMemoryMiB?: number | undefined;
}

export interface Target {
  readonly name: string;
  /** The rows that the comparison needs. */
  readonly rows: readonly string[];
  readonly bound: 'at least' | 'at most';
  readonly goal: number;
  readonly digits: number;
  /** One per round. Empty when a row that it needs was not measured. */
  readonly values: (results: Results) => readonly number[];
}

export const TARGETS: readonly Target[] = [
  ratio('single charges / debits by Postgres alone', 'U', 'pgU', 'at least', 1.5),
  ratio('holds, captured / single charges', 'D', 'U', 'at least', 0.38),
  ratio('spend keys of one budget / single charges', 'S1', 'U', 'at least', 0.8),
  ratio('spend keys three budgets deep / single charges', 'S3', 'U', 'at least', 0.7),
  ratio('one hot budget of 10,000 keys / one hot consumer', 'HB', 'H', 'at least', 0.8),
  ratio('one hot consumer / debits of one row', 'H', 'pgH', 'at least', 5),
  ratio('batched charges / debits by Postgres alone', 'B', 'pgU', 'at least', 3),
  ratio('through the client library / debits by Postgres alone', 'C', 'pgU', 'at least', 2),
  ratio('single charges / Fastify + pg by hand', 'U', 'fastify', 'at least', 2.5),
  ratio('single charges / bare Koa', 'U', 'K', 'at least', 0.45),
  ratio('single charges / bare Koa, then the charge statement', 'U', ['K', 'F'], 'at least', 0.9),
  ratio('batched charges / the charge statement alone', 'B', 'F', 'at least', 0.85),
  ratio(
    'one connection, p50 / one debit by Postgres alone, p50',
    'L',
    'pgL',
    'at most',
    3,
    'p50Ms',
  ),
  ratio('single charges, much data / little data', 'large U', 'small U', 'at least', 0.8),
  ...['earnings', 'tools', 'top-ups'].flatMap((read) => [
    ratio(
      `${read}, p50, much data / little`,
      `large ${read}`,
      `small ${read}`,
      'at most',
      1.5,
      'p50Ms',
    ),
    wait(`${read} with much data, p99 ms`, `large ${read}`, 30),
  ]),
  ...['charges', 'charges of a tool', 'charges of a consumer'].map((read) =>
    wait(`${read} with much data, p99 ms`, `large ${read}`, 30),
  ),
  figure('bytes a charge in Postgres', 'bytesPerCharge', 300),
  figure('memory of an API process at its peak, MiB', 'apiPeakMemoryMiB', 256),
];

/**
 * Over several rows: compared with the rate at which each charge uses the whole machine for one of them and then the
 * whole machine for the next.
 */
function ratio(
  name: string,
  of: string,
  over: string | readonly string[],
  bound: Target['bound'],
  goal: number,
  what: 'perSecond' | 'p50Ms' = 'perSecond',
): Target {
  const overs = [over].flat();
  return {
    name,
    rows: [of, ...overs],
    bound,
    goal,
    digits: 2,
    values: (results) => {
      const rivals = overs.map((key) => pick(results, key, what));
      if (rivals.some(({ length }) => length === 0)) return [];
      return pick(results, of, what).map((value, round) =>
        rivals.reduce((sum, rival) => sum + value / (rival[round] ?? Number.NaN), 0),
      );
    },
  };
}

/** The 99th percentile. */
function wait(name: string, of: string, goal: number): Target {
  return {
    name,
    rows: [of],
    bound: 'at most',
    goal,
    digits: 1,
    values: (results) => pick(results, of, 'p99Ms'),
  };
}

function pick({ rows }: Results, key: string, what: 'perSecond' | 'p50Ms' | 'p99Ms'): number[] {
  const row = rows.find((candidate) => candidate.key === key);
  return row ? bestOf(row).rounds.map((measured) => measured[what] ?? Number.NaN) : [];
}

function figure(name: string, which: 'bytesPerCharge' | 'apiPeakMemoryMiB', goal: number): Target {
  return {
    name,
    rows: [],
    bound: 'at most',
    goal,
    digits: 0,
    values: (results) => (results[which] === undefined ? [] : [results[which]]),
  };
}

export function isReached({ bound, goal }: Target, values: readonly number[]): boolean {
  return bound === 'at least' ? median(values) >= goal : median(values) <= goal;
}

/** The given rows, plus the rows that their targets compare them with. */
export function withRivals(keys: readonly string[]): string[] {
  const rivals = TARGETS.flatMap(({ rows: [of, ...overs] }) =>
    of !== undefined && keys.includes(of) ? overs : [],
  );
  return [...new Set([...keys, ...rivals])];
}
