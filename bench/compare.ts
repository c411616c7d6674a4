/**
 * `npm run bench:compare -- <folder>...`: charges over HTTP by this checkout, by those in the folders, and by this one once more,
 * which shows how much the same code differs from itself. A folder is a checkout of another commit with its packages installed.
 * Each has PostgreSQL and API processes of its own. All are measured in one run, a short slice each in turn, so other load
 * on the machine affects them alike. What a slice leaves in the tails is moved before the next. Prints medians and ratios, of the
 * rates and of the CPU time that PostgreSQL and the API spend on a charge, its part of moving the tails included, and writes nothing.
 * A ratio is the geometric mean of those of the rounds, with its standard error: many rounds resolve what one slice hides.
 * Options: `--rows U,S1,S3,H,HB,B,C`, `--rounds 8`, `--seconds 2` for a slice, `--connections 256` (of B: a thirty-second).
 */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { chargeByClient } from './client-calls.ts';
import { cpuSeconds } from './cpu-time.ts';
import { chargeInBatches, chargeOverHttp } from './load.ts';
import { median, type Effort, type Measured } from './rounds.ts';
import { startSide, type Side } from './side.ts';

const HERE = join(import.meta.dirname, '..');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'string', default: 'U,S1,S3,H,HB,B,C' },
    rounds: { type: 'string', default: '8' },
    seconds: { type: 'string', default: '2' },
    connections: { type: 'string', default: '256' },
  },
});
const ROUNDS = Number(values.rounds);
const CONNECTIONS = Number(values.connections);
/** Until each of two API processes knows nearly all of 10,000 keys. Until then, PostgreSQL looks keys up for charges. */
const WARM_UP_SECONDS = 15;
const SECONDS = Number(values.seconds);

type Charging = (side: Side, effort: Effort) => Promise<Measured> | undefined;

const byKeysOf =
  (file: (side: Side) => string | undefined): Charging =>
  (side, effort) => {
    const keysFile = file(side);
    if (keysFile === undefined) return undefined;
    return chargeOverHttp({ ...side.ledger, keysFile, url: side.api.url }, effort);
  };

const ROWS: Readonly<Record<string, Charging>> = {
  U: byKeysOf(({ ledger }) => ledger.keysFile),
  S1: byKeysOf(({ spendKeys }) => spendKeys?.[1]),
  S3: byKeysOf(({ spendKeys }) => spendKeys?.[3]),
  H: byKeysOf(({ ledger }) => ledger.hotKeyFile),
  HB: byKeysOf(({ spendKeys }) => spendKeys?.hot),
  B: ({ ledger, api }, effort) =>
    chargeInBatches(
      { ...ledger, url: api.url },
      { ...effort, connections: Math.ceil(CONNECTIONS / 32) },
    ),
  C: ({ ledger, api }, effort) => chargeByClient(ledger, api, effort),
};

/** Rows whose ratio on each side is a target. */
const RELATED = [
  ['S1', 'U'],
  ['S3', 'U'],
  ['HB', 'H'],
] as const;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

interface Slice {
  readonly perSecond: number;
  readonly postgresMicros: number;
  readonly apiMicros: number;
}

const cpuMicros = ({ postgresMicros, apiMicros }: Slice) => postgresMicros + apiMicros;

async function compare(sides: readonly Side[], rows: readonly string[]): Promise<void> {
  const slices = new Map<string, Slice[]>();
  const of = (row: string, side: Side) => slices.get(`${row} ${side.name}`) ?? [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const seconds = round === 0 ? WARM_UP_SECONDS : SECONDS;
    const effort = { connections: CONNECTIONS, seconds, seed: round };
    for (const row of rows) {
      // The first side of a round is the last of the next.
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
        const { postgres, api } = side.pids;
        const before = { postgres: cpuSeconds(postgres), api: cpuSeconds(api) };
        const measured = await ROWS[row]?.(side, effort);
        await side.rollUp();
        // The first round warms up.
        if (measured === undefined || round === 0) continue;
        const { count, perSecond } = measured;
        const slice = {
          perSecond,
          postgresMicros: ((cpuSeconds(postgres) - before.postgres) * 1e6) / count,
          apiMicros: ((cpuSeconds(api) - before.api) * 1e6) / count,
        };
        slices.set(`${row} ${side.name}`, [...of(row, side), slice]);
      }
    }
    say(round === 0 ? 'warmed up' : `round ${round} of ${ROUNDS}`);
  }
  const [first, ...others] = sides as [Side, ...Side[]];
  for (const row of rows) {
    for (const side of sides.filter((side) => of(row, side).length > 0)) {
      const medianOf = (value: (slice: Slice) => number) => median(of(row, side).map(value));
      const rate = medianOf(({ perSecond }) => perSecond).toFixed(0);
      const postgres = medianOf(({ postgresMicros }) => postgresMicros).toFixed(1);
      const api = medianOf(({ apiMicros }) => apiMicros).toFixed(1);
      const all = medianOf(cpuMicros).toFixed(1);
      const parts = `${postgres} of PostgreSQL, ${api} of the API`;
      say(`${row}, ${side.name}: ${rate} a second, ${all} us of CPU (${parts})`);
    }
    for (const other of others)
      say(`  ${first.name} / ${other.name}: ${ratios(of(row, first), of(row, other))}`);
  }
  for (const [row, over] of RELATED) {
    if (!rows.includes(row) || !rows.includes(over)) continue;
    for (const side of sides)
      say(`${row} / ${over}, ${side.name}: ${ratios(of(row, side), of(over, side))}`);
  }
}

/** How quick one is, compared with the other: by charges a second, and by the CPU time of a charge. */
function ratios(one: readonly Slice[], other: readonly Slice[]): string {
  if (one.length === 0 || other.length === 0) return 'not measured';
  const rates = one.map(({ perSecond }, n) => perSecond / (other[n]?.perSecond ?? Number.NaN));
  const costs = one.map((slice, n) => {
    const counterpart = other[n];
    return counterpart === undefined ? Number.NaN : cpuMicros(counterpart) / cpuMicros(slice);
  });
  return `${spread(rates)} by rate, ${spread(costs)} by CPU time`;
}

/** The geometric mean and its standard error, which a single round does not have, and the least and the greatest value. */
function spread(values: readonly number[]): string {
  const logs = values.map((value) => Math.log(value));
  const center = mean(logs);
  const error = Math.sqrt(mean(logs.map((log) => (log - center) ** 2)) / (logs.length - 1));
  const ratio = Math.exp(center);
  const shownError = logs.length > 1 ? ` ± ${(ratio * error).toFixed(3)}` : '';
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return `${ratio.toFixed(3)}${shownError} (${least.toFixed(2)} to ${most.toFixed(2)})`;
}

function mean(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}

const rows = values.rows.split(',');
const unknown = rows.filter((row) => ROWS[row] === undefined);
if (unknown.length > 0) throw new RangeError(`there is no row ${unknown.join(', ')}`);
const sides: Side[] = [];
try {
  for (const [name, folder] of [
    ['this', HERE],
    ...positionals.map((folder) => [folder, resolve(folder)] as const),
    ['this again', HERE],
  ] as const) {
    sides.push(await startSide(name, folder));
  }
  await compare(sides, rows);
} finally {
  for (const side of sides) await side.end();
}
