/**
 * Measures rows in turn for several rounds, so other load on the machine affects all of them alike. A row has several
 * connection counts; the one with the highest median is its best.
 */
export interface Effort {
  readonly connections: number;
  readonly seconds: number;
  readonly seed: number;
}

export interface Measured {
  /** The number of operations. */
  readonly count: number;
  readonly perSecond: number;
  /** Undefined when operations are not timed individually. */
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
}

export interface Row {
  readonly key: string;
  readonly name: string;
  readonly connections: readonly number[];
  readonly measure: (effort: Effort) => Promise<Measured>;
}

interface Variant {
  readonly connections: number;
  readonly rounds: readonly Measured[];
}

export interface RowResult {
  readonly key: string;
  readonly name: string;
  readonly variants: readonly Variant[];
}

export interface RoundsOptions {
  readonly rounds: number;
  readonly seconds: number;
  readonly seed: number;
  readonly say: (text: string) => void;
}

/**
 * The first round is not counted: until hot code is compiled and the tables have some rows, rows with more code look
 * slower.
 */
export async function measureInTurn(
  rows: readonly Row[],
  options: RoundsOptions,
): Promise<RowResult[]> {
  const { rounds, seconds, seed, say } = options;
  const measured = new Map<string, Measured[]>();
  for (let round = 0; round <= rounds; round += 1) {
    for (const row of rows) {
      for (const connections of row.connections) {
        const found = await row.measure({ connections, seconds, seed: seed + round });
        say(
          `${round === 0 ? 'warm-up' : `round ${round}`}: ${row.name}, ${connections} at a time: ${shown(found)}`,
        );
        if (round === 0) continue;
        const before = measured.get(`${row.key} ${connections}`) ?? [];
        measured.set(`${row.key} ${connections}`, [...before, found]);
      }
    }
  }
  return rows.map(({ key, name, connections }) => ({
    key,
    name,
    variants: connections.map((count) => ({
      connections: count,
      rounds: measured.get(`${key} ${count}`) ?? [],
    })),
  }));
}

function shown({ perSecond, p50Ms, p99Ms }: Measured): string {
  const latency =
    p50Ms === undefined ? '' : `, p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms?.toFixed(2)} ms`;
  return `${perSecond.toFixed(0)}/s${latency}`;
}

/** The connection count with the highest median. */
export function bestOf({ variants }: RowResult): Variant {
  return variants.reduce((best, variant) =>
    medianRate(variant) > medianRate(best) ? variant : best,
  );
}

function medianRate({ rounds }: Variant): number {
  return median(rounds.map(({ perSecond }) => perSecond));
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.slice((sorted.length - 1) >> 1, (sorted.length >> 1) + 1);
  return middle.reduce((sum, value) => sum + value, 0) / middle.length;
}
