/**
 * The time of a reconciliation beside 30 days of abandoned checkouts, 1,000 a day, with the default rate of calls to Stripe,
 * which answers after 120 ms. Fails when a run takes a minute or asks about one of the checkouts.
 * `npm run bench:reconcile -- [--days 30] [--a-day 1000] [--stripe-ms 120] [--runs 5]`
 */
import assert from 'node:assert/strict';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { sql } from '../src/store/database.ts';
import type { TopUp } from '../src/store/top-ups/top-ups.ts';
import { reconcileNow } from '../src/temporal/reconcile-now.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../test/support/setup.ts';
import { openTopUpHarness, type TopUpHarness } from '../test/support/top-up-harness.ts';

const { values: options } = parseArgs({
  options: {
    days: { type: 'string', default: '30' },
    'a-day': { type: 'string', default: '1000' },
    'stripe-ms': { type: 'string', default: '120' },
    runs: { type: 'string', default: '5' },
  },
});
const DAYS = Number(options.days);
const A_DAY = Number(options['a-day']);
const RUNS = Number(options.runs);
const RUN_MS_MAX = 60_000;
/** The default of STRIPE_STEPS_PER_SECOND; tests have no limit. */
const STEPS_PER_SECOND = '20';

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** A checkout that its workflow ended because nobody paid. */
async function abandonOne(harness: TopUpHarness): Promise<TopUp> {
  const topUp = await harness.checkout(await harness.newConsumer(), 25);
  await harness.control(`sessions/${topUp.sessionId}/expire-now`);
  await harness.statusBecomes(topUp, 'expired');
  return topUp;
}

/** Copies of it, over the days before today. */
async function abandonMany({ database }: TopUpHarness, { id }: TopUp): Promise<void> {
  for (let day = 0; day < DAYS; day += 1) {
    await database.query(sql.typeAlias('nothing')`
      insert into farebox.top_ups select (jsonb_populate_record(t, jsonb_build_object(
        'id', uuidv7(-(${day}::int + n::float8 / ${A_DAY}) * interval '1 day'),
        'session_id', 'cs_test_abandoned_' || ${day}::int || '_' || n,
        'created_at', now() - (${day + 1}::int + n::float8 / ${A_DAY}) * interval '1 day',
        'updated_at', now() - (${day}::int + n::float8 / ${A_DAY}) * interval '1 day'
      ))).* from farebox.top_ups t, generate_series(1, ${A_DAY}::int) n where t.id = ${id}
    `);
  }
  await database.query(sql.typeAlias('nothing')`analyze farebox.top_ups`);
}

async function reconcile({ temporal }: TopUpHarness) {
  const start = performance.now();
  const { looked, nudged, differing } = await reconcileNow(temporal, AbortSignal.timeout(900_000));
  assert.equal(differing, 0);
  return { looked, nudged, tookMs: performance.now() - start };
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

await mochaGlobalSetup();
const harness = await openTopUpHarness({ STRIPE_STEPS_PER_SECOND: STEPS_PER_SECOND });
try {
  await harness.startWorker();
  const abandoned = await abandonOne(harness);
  await abandonMany(harness, abandoned);
  await harness.control('faults', {
    path: '/v1/',
    kind: 'delay',
    ms: Number(options['stripe-ms']),
    times: 1_000_000,
  });
  say(`${DAYS * A_DAY} abandoned checkouts; load of the machine ${loadavg()[0]?.toFixed(1)}.`);
  const runs = [];
  for (let n = 0; n < RUNS; n += 1) runs.push(await reconcile(harness));
  const slowestMs = Math.max(...runs.map(({ tookMs }) => tookMs));
  const looked = runs.reduce((sum, run) => sum + run.looked, 0);
  const isMet = slowestMs < RUN_MS_MAX && looked === 0;
  if (!isMet) process.exitCode = 1;
  say(
    `A run takes ${runs.map(({ tookMs }) => seconds(tookMs)).join(', ')} and asks about ${looked} of them ` +
      `(target ${seconds(RUN_MS_MAX)} and none): ${isMet ? 'met' : 'NOT MET'}`,
  );
} finally {
  await harness.close();
  await mochaGlobalTeardown();
}
