/** Faults of the lines between the parts, and what callers may see of each. */
import { lineTrial, type Trial } from './lined-site.ts';

/** A charge was refused before it was sent, or its outcome is unknown and the same key resolves it. */
export const OUTAGE = ['503', 'outcome_unknown', 'idempotency_key_in_use', '201 replayed'];

const PG = 'API and Postgres';
const TEMPORAL = 'worker and Temporal';
const PROCESSOR = 'worker and processor';

const DELAY_MS = 500;
const HALF_OPEN = 'requests arrive, answers do not';
const FORGOTTEN = 'open connections are forgotten';

/** Outages last `longMs`, everything else a third of that. */
export function lineTrials(longMs: number): readonly Trial[] {
  const shortMs = Math.round(longMs / 3);
  const trialsOf = (line: typeof PG | typeof TEMPORAL | typeof PROCESSOR) => {
    // Charges need neither Temporal nor the processor.
    const expected = { seen: line === PG ? OUTAGE : [] };
    const late = `data arrives ${DELAY_MS} ms later`;
    const resets = '1 % of the pieces of data reset their connection';
    return [
      lineTrial(line, { kind: 'delayed', ms: DELAY_MS }, late, shortMs, expected),
      lineTrial(
        line,
        { kind: 'narrow', bytesPerSecond: 20_000 },
        '20 kB a second',
        shortMs,
        expected,
      ),
      lineTrial(line, { kind: 'resetting', part: 0.01 }, resets, shortMs, expected),
      lineTrial(line, { kind: 'silent' }, 'nothing arrives', longMs, expected),
      lineTrial(line, { kind: 'half_open' }, HALF_OPEN, longMs, expected),
      lineTrial(line, { kind: 'cut' }, 'connections are reset', shortMs, expected),
      lineTrial(line, 'forgotten', FORGOTTEN, 0, expected),
    ];
  };
  return [PG, TEMPORAL, PROCESSOR].flatMap((line) => trialsOf(line as typeof PG));
}

/** The hard ones of each line, for a test of seconds. */
export function shortTrials(): readonly Trial[] {
  return [
    lineTrial(PG, 'forgotten', FORGOTTEN, 0, { seen: OUTAGE }),
    lineTrial(PG, { kind: 'half_open' }, HALF_OPEN, 1_000, { seen: OUTAGE }),
    lineTrial(PG, { kind: 'resetting', part: 0.05 }, '5 % of the data resets', 1_000, {
      seen: OUTAGE,
    }),
    lineTrial(TEMPORAL, { kind: 'cut' }, 'connections are reset', 500, { seen: [] }),
    lineTrial(TEMPORAL, 'forgotten', FORGOTTEN, 0, { seen: [] }),
    lineTrial(PROCESSOR, { kind: 'silent' }, 'nothing arrives', 500, { seen: [] }),
  ];
}
