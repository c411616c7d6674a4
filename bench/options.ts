/** The command line. Every option that makes a run smaller makes it partial, and partial runs are not published. */
import { parseArgs } from 'node:util';
import { CHARGE_ROWS } from './charges.ts';
import { CONSUMERS } from './ledger.ts';
import { withRivals } from './targets.ts';

export interface Options {
  /** Rows of charges.ts. Empty for none. */
  readonly chargeRows: readonly string[];
  readonly measuresBytes: boolean;
  readonly measuresLarge: boolean;
  /** Consumers of the large ledger; it has ten times as many charges. */
  readonly largeConsumers: number;
  readonly rounds: number;
  readonly seconds: number;
  readonly seed: number;
  readonly isPartial: boolean;
}

const ROUNDS = 3;
const SECONDS = 5;
const LARGE_CONSUMERS = 1_000_000;

export const USAGE = `npm run bench -- [options]
  --large          also with ${LARGE_CONSUMERS} consumers and ten times as many charges
  --rows U,H       these rows and what they are compared with: ${CHARGE_ROWS.join(', ')}, bytes, large
  --rounds 3       how often each is measured
  --seconds 5      for how long
  --consumers N    of the large ledger
  --seed N         for the random draws
`;

export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      large: { type: 'boolean', default: false },
      rows: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      consumers: { type: 'string' },
      seed: { type: 'string' },
    },
  });
  const asked = values.rows?.split(',') ?? [...CHARGE_ROWS, 'bytes'];
  const unknown = asked.filter((key) => ![...CHARGE_ROWS, 'bytes', 'large'].includes(key));
  if (unknown.length > 0) throw new RangeError(`there is no row ${unknown.join(', ')}`);
  return {
    chargeRows: withRivals(asked.filter((key) => CHARGE_ROWS.includes(key))),
    measuresBytes: asked.includes('bytes'),
    measuresLarge: values.large || asked.includes('large'),
    largeConsumers: integer('consumers', values.consumers, LARGE_CONSUMERS, CONSUMERS),
    rounds: integer('rounds', values.rounds, ROUNDS),
    seconds: integer('seconds', values.seconds, SECONDS),
    seed: integer('seed', values.seed, Date.now() % 1e6),
    isPartial: [values.rows, values.rounds, values.seconds, values.consumers].some(
      (value) => value !== undefined,
    ),
  };
}

function integer(name: string, text: string | undefined, fallback: number, min = 1): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < min) {
    throw new RangeError(`--${name} must be an integer of at least ${min}, not ${text}`);
  }
  return value;
}
