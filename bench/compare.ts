/**
 * `npm run bench:compare -- <folder>...`: charges over HTTP by this checkout and by those in the folders. A
 * folder is a checkout of another commit with its packages installed. Each is started several times, because
 * two starts of the same code may differ by 5 %, at times by 16 %, for as long as they run. Each start has
 * PostgreSQL and API processes of its own. All are measured in one run, a short slice each in turn, so other
 * load on the machine affects them alike. What a slice leaves in the tails is moved before the next, and the
 * tables are vacuumed. Prints medians and ratios, of the rates and of the CPU time that PostgreSQL and the
 * API spend on a charge, its part of moving the tails included, and writes nothing.
 * A ratio is taken in each round, between the starts of the same number: their geometric mean, with the
 * standard error of the means of the starts. A ratio of a checkout's first half of starts and its second half
 * shows how much the same code differs from itself. Options: `--rows U,S1,S3,H,HB,B,C`, `--starts 4` (an even
 * number), `--rounds 4`, `--seconds 2` for a slice, `--connections 256` (of B: a thirty-second).
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
    starts: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '2' },
    connections: { type: 'string', default: '256' },
  },
});
const STARTS = Number(values.starts);
const ROUNDS = Number(values.rounds);
const CONNECTIONS = Number(values.connections);
/**
 * Until each of two API processes knows nearly all of 10,000 keys. Until then, PostgreSQL looks keys up for
 * charges.
 */
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
  readonly starts: readonly Side[];
}

/** `sides`: all starts, in the order in which they are measured. */
async function compare(
  codes: readonly Code[],
  sides: readonly Side[],
  rows: readonly string[],
): Promise<void> {
  const slices: { readonly row: string; readonly side: Side; readonly slice: Slice }[] = [];
  const allOf = (row: string, starts: readonly Side[]) =>
    starts.map((side) =>
      slices.filter((each) => each.row === row && each.side === side).map(({ slice }) => slice),
    );
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
    for (const { name, starts } of codes) {
      const all = allOf(row, starts);
      if (all.flat().length === 0) continue;
      for (const slices of all) say(`${row}, ${name}: ${summary(slices)}`);
      say(`  its starts: ${ratios(all.slice(0, STARTS / 2), all.slice(STARTS / 2))}`);
    }
    for (const other of others) {
      const both = ratios(allOf(row, first.starts), allOf(row, other.starts));
      say(`  ${first.name} / ${other.name}: ${both}`);
    }
  }
  for (const [row, over] of RELATED) {
    if (!rows.includes(row) || !rows.includes(over)) continue;
    for (const { name, starts } of codes)
      say(`${row} / ${over}, ${name}: ${ratios(allOf(row, starts), allOf(over, starts))}`);
  }
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

/**
 * How quick the starts of one are, compared with those of the other: by charges a second, and by the CPU time
 * of a charge.
 */
function ratios(one: readonly (readonly Slice[])[], other: readonly (readonly Slice[])[]): string {
  const pairs = one.map((slices, start) =>
    slices.flatMap((slice, round) => {
      const counterpart = other[start]?.[round];
      return counterpart === undefined ? [] : [{ slice, counterpart }];
    }),
  );
  if (pairs.some((rounds) => rounds.length === 0)) return 'not measured';
  const rates = pairs.map((rounds) =>
    geometricMean(rounds.map(({ slice, counterpart }) => slice.perSecond / counterpart.perSecond)),
  );
  const costs = pairs.map((rounds) =>
    geometricMean(
      rounds.map(({ slice, counterpart }) => cpuMicros(counterpart) / cpuMicros(slice)),
    ),
  );
  return `${spread(rates)} by rate, ${spread(costs)} by CPU time`;
}

/** The geometric mean and its standard error, and the least and the greatest value. */
function spread(values: readonly number[]): string {
  const center = geometricMean(values);
  const error = Math.sqrt(
    mean(values.map((value) => Math.log(value / center) ** 2)) / (values.length - 1),
  );
  const shownError = values.length > 1 ? ` ± ${(center * error).toFixed(3)}` : '';
  return `${center.toFixed(3)}${shownError} (${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)})`;
}

const geometricMean = (values: readonly number[]): number =>
  Math.exp(mean(values.map((value) => Math.log(value))));

function mean(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}

if (STARTS < 2 || STARTS % 2 !== 0) throw new RangeError('--starts is an even number');
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
  const checkouts = [
    { name: 'this', folder: HERE, starts: [] as Side[] },
    ...positionals.map((name) => ({ name, folder: resolve(name), starts: [] as Side[] })),
  ];
  for (let number = 0; number < STARTS; number += 1) {
    // The two checkouts start and are measured one after the other, each of them first as often as the other.
    for (const { folder, starts } of number % 2 === 0 ? checkouts : checkouts.toReversed())
      starts.push(await start(folder));
  }
  await compare(checkouts, sides, rows);
} finally {
  for (const side of sides) await side.end();
}
