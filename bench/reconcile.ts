/**
 * The time of a reconciliation beside 30 days of abandoned checkouts, 1,000 a day, with the default rate of
 * calls to Stripe, which answers after 120 ms. Fails when a run takes a minute or asks about one of the
 * checkouts. Then the time of the run that finds 1,000 paid checkouts whose reports and workflows were all
 * lost. Fails when one of them is not credited. `npm run bench:reconcile -- [--days 30] [--a-day 1000]
 * [--stripe-ms 120] [--runs 5] [--lost 1000] [--steps-per-second 10]`
 */
import { randomUUIDv7 } from 'node:crypto';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { Type } from 'typebox';
import { row, sql } from '../src/store/database.ts';
import type { TopUp } from '../src/store/top-ups/top-ups.ts';
import { createCustomer, createSession } from '../src/stripe/calls.ts';
import { reconcileNow } from '../src/temporal/reconcile-now.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../test/support/setup.ts';
import { until } from '../test/support/stack.ts';
import { openTopUpHarness, type TopUpHarness } from '../test/support/top-up-harness.ts';

const { values: options } = parseArgs({
  options: {
    days: { type: 'string', default: '30' },
    'a-day': { type: 'string', default: '1000' },
    'stripe-ms': { type: 'string', default: '120' },
    runs: { type: 'string', default: '5' },
    lost: { type: 'string', default: '1000' },
    /** The default of STRIPE_STEPS_PER_SECOND; tests have no limit. */
    'steps-per-second': { type: 'string', default: '10' },
  },
});
const DAYS = Number(options.days);
const A_DAY = Number(options['a-day']);
const RUNS = Number(options.runs);
const RUN_MS_MAX = 60_000;
const LOST = Number(options.lost);
const PAID_AT_ONCE = 8;

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

/**
 * Paid checkouts that are pending, as copies of `like`: Temporal has never heard of them, nor Farebox of
 * their payments.
 */
async function loseMany(harness: TopUpHarness, like: TopUp): Promise<void> {
  const { database, stripe } = harness;
  await harness.control('webhooks', { mode: 'drop' });
  const customer = await createCustomer(stripe, like.accountId);
  const left = Array.from({ length: LOST }, () => randomUUIDv7()).values();
  const lose = async () => {
    for (const id of left) {
      const payable = { ...like, id, sessionExpiresAt: null };
      const session = await createSession(stripe, payable, customer, 'https://example.com');
      await harness.pay(session.url);
      await database.query(sql.typeAlias('nothing')`
        insert into farebox.top_ups select (jsonb_populate_record(t, jsonb_build_object(
          'id', ${id}::text, 'session_id', ${session.id}::text, 'session_url', ${session.url}::text,
          'status', 'pending', 'seen_verdict', null, 'seen_at', null, 'payment_intent_id', null,
          'session_expires_at', now() - interval '1 hour', 'created_at', now() - interval '25 hours'
        ))).* from farebox.top_ups t where t.id = ${like.id}
      `);
    }
  };
  await Promise.all(Array.from({ length: PAID_AT_ONCE }, lose));
}

async function countPending({ database }: TopUpHarness): Promise<number> {
  return database.oneFirst(sql.type(row(Type.Object({ count: Type.Integer() })))`
    select count(*) as count from farebox.top_ups where status = 'pending'
  `);
}

async function reconcile({ temporal }: TopUpHarness) {
  const start = performance.now();
  const { looked, nudged, differing } = await reconcileNow(
    temporal,
    AbortSignal.timeout(1_800_000),
  );
  return { looked, nudged, differing, tookMs: performance.now() - start };
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

await mochaGlobalSetup();
const harness = await openTopUpHarness({ STRIPE_STEPS_PER_SECOND: options['steps-per-second'] });
try {
  await harness.startWorker();
  const abandoned = await abandonOne(harness);
  await abandonMany(harness, abandoned);
  const slow = { path: '/v1/', kind: 'delay', ms: Number(options['stripe-ms']), times: 1_000_000 };
  await harness.control('faults', slow);
  say(`${DAYS * A_DAY} abandoned checkouts; load of the machine ${loadavg()[0]?.toFixed(1)}.`);
  const runs = [];
  for (let n = 0; n < RUNS; n += 1) runs.push(await reconcile(harness));
  const slowestMs = Math.max(...runs.map(({ tookMs }) => tookMs));
  const looked = runs.reduce((sum, run) => sum + run.looked, 0);
  const isMet =
    slowestMs < RUN_MS_MAX && looked === 0 && runs.every(({ differing }) => differing === 0);
  if (!isMet) process.exitCode = 1;
  say(
    `A run takes ${runs.map(({ tookMs }) => seconds(tookMs)).join(', ')} and asks about ${looked} of them ` +
      `(target ${seconds(RUN_MS_MAX)} and none): ${isMet ? 'met' : 'NOT MET'}`,
  );
  if (LOST > 0) {
    await harness.forgetFaults();
    await loseMany(harness, abandoned);
    await harness.control('faults', slow);
    const run = await reconcile(harness);
    await until(async () => (await countPending(harness)) === 0, { timeoutMs: 600_000 });
    const again = await reconcile(harness);
    if (again.differing > 0) process.exitCode = 1;
    say(
      `${LOST} paid checkouts whose reports and workflows were lost: the run that finds them takes ${seconds(run.tookMs)} ` +
        `and nudges ${run.nudged}; afterwards ${again.differing} differ. ` +
        `${options['steps-per-second']} steps a second; load of the machine ${loadavg()[0]?.toFixed(1)}.`,
    );
  }
} finally {
  await harness.close();
  await mochaGlobalTeardown();
}
