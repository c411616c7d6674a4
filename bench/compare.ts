/**
 * `npm run bench:compare -- <folder>...`: charges over HTTP by this checkout and by those in the folders. A folder is a checkout of another
 * commit with its packages installed. Each is started twice, because two processes of the same code may differ by 5 % for as long as they run.
 * Each start has PostgreSQL and API processes of its own. All are measured in one run, a short slice each in turn, so other load
 * on the machine affects them alike. What a slice leaves in the tails is moved before the next, and the tables are vacuumed. Prints
 * medians and ratios, of the rates and of the CPU time that PostgreSQL and the API spend on a charge, its part of moving the tails
 * included, and writes nothing.
 * A ratio is the geometric mean of those of the rounds, with its standard error: many rounds resolve what one slice hides. A ratio of two
 * checkouts is of both their starts together. A ratio of a checkout's two starts shows how much the same code differs from itself.
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

/** A checkout. */
interface Code {
  readonly name: string;
  readonly starts: readonly [Side, Side];
}

async function compare(codes: readonly Code[], rows: readonly string[]): Promise<void> {
  const sides = [...codes.map(({ starts }) => starts[0]), ...codes.map(({ starts }) => starts[1])];
  const slices: { readonly row: string; readonly side: Side; readonly slice: Slice }[] = [];
  const of = (row: string, side: Side) =>
    slices.filter((each) => each.row === row && each.side === side).map(({ slice }) => slice);
  const both = (row: string, { starts: [one, other] }: Code) =>
    together(of(row, one), of(row, other));
  for (let round = 0; round <= ROUNDS; round += 1) {
    const seconds = round === 0 ? WARM_UP_SECONDS : SECONDS;
    const effort = { connections: CONNECTIONS, seconds, seed: round };
    for (const row of rows) {
      // The first side of a round is the last of the next.
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
        const { postgres, api } = side.pids;
        const cpuNow = () => ({ postgres: cpuSeconds(postgres), api: cpuSeconds(api) });
        const before = cpuNow();
        const measured = await ROWS[row]?.(side, effort);
        await side.rollUp();
        const after = cpuNow();
        await side.vacuum();
        // The first round warms up.
        if (measured === undefined || round === 0) continue;
        const { count, perSecond } = measured;
        const slice = {
          perSecond,
          postgresMicros: ((after.postgres - before.postgres) * 1e6) / count,
          apiMicros: ((after.api - before.api) * 1e6) / count,
        };
        slices.push({ row, side, slice });
      }
    }
    say(round === 0 ? 'warmed up' : `round ${round} of ${ROUNDS}`);
  }
  const [first, ...others] = codes as [Code, ...Code[]];
  for (const row of rows) {
    for (const code of codes.filter((each) => both(row, each).length > 0)) {
      for (const side of code.starts) say(`${row}, ${code.name}: ${summary(of(row, side))}`);
      const [one, other] = code.starts;
      say(`  its two starts: ${ratios(of(row, one), of(row, other))}`);
    }
    for (const other of others)
      say(`  ${first.name} / ${other.name}: ${ratios(both(row, first), both(row, other))}`);
  }
  for (const [row, over] of RELATED) {
    if (!rows.includes(row) || !rows.includes(over)) continue;
    for (const code of codes)
      say(`${row} / ${over}, ${code.name}: ${ratios(both(row, code), both(over, code))}`);
  }
}

/** The means of each round. */
function together(one: readonly Slice[], other: readonly Slice[]): Slice[] {
  return one.flatMap((slice, n) => {
    const twin = other[n];
    if (!twin) return [];
    const meanOf = (value: (each: Slice) => number) => (value(slice) + value(twin)) / 2;
    return {
      perSecond: meanOf(({ perSecond }) => perSecond),
      postgresMicros: meanOf(({ postgresMicros }) => postgresMicros),
      apiMicros: meanOf(({ apiMicros }) => apiMicros),
    };
  });
}

/** Medians. */
function summary(slices: readonly Slice[]): string {
  const medianOf = (value: (slice: Slice) => number) => median(slices.map(value));
  const rate = medianOf(({ perSecond }) => perSecond).toFixed(0);
  const postgres = medianOf(({ postgresMicros }) => postgresMicros).toFixed(1);
  const api = medianOf(({ apiMicros }) => apiMicros).toFixed(1);
  const parts = `${postgres} of PostgreSQL, ${api} of the API`;
  return `${rate} a second, ${medianOf(cpuMicros).toFixed(1)} us of CPU (${parts})`;
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
const start = async (folder: string): Promise<Side> => {
  const side = await startSide(folder);
  sides.push(side);
  return side;
};
try {
  const codes: Code[] = [];
  for (const [name, folder] of [
    ['this', HERE],
    ...positionals.map((folder) => [folder, resolve(folder)] as const),
  ] as const) {
    codes.push({ name, starts: [await start(folder), await start(folder)] });
  }
  await compare(codes, rows);
} finally {
  for (const side of sides) await side.end();
}
