/**
 * Doctor finds what is off: one database with a fault for each consumer, planted past every guard that the
 * service and the schema have, and one without any.
 */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { Client } from 'pg';
import type { Stripe } from 'stripe';
import { readScheduleConfig, readStripeConfig, readTemporalConfig } from '../../src/config.ts';
import { uuidOf, wireId } from '../../src/domain/ids.ts';
import { createStripe } from '../../src/stripe/calls.ts';
import { CHECK_NAMES } from '../../src/store/audit/ledger-checks.ts';
import { createDatabase } from '../../src/store/database.ts';
import { rebuildRollups } from '../../src/store/earnings/rollups.ts';
import { createTemporalClient } from '../../src/temporal/client.ts';
import { ensureSchedules, schedulesOf } from '../../src/temporal/schedules.ts';
import { createTestAccounts } from '../support/accounts.ts';
import {
  createTestDatabase,
  createTestNamespace,
  farebox,
  startSimulator,
  type Environment,
  type Simulator,
  type TestDatabase,
} from '../support/stack.ts';
import { GUARDS, HOURS, PLANTS, type Planted } from './doctor-plants.ts';

interface Finding {
  readonly check: string;
  readonly subject: string;
  readonly detail: string;
}

describe('farebox doctor', () => {
  let database: TestDatabase;
  let simulator: Simulator;
  let stripe: Stripe;
  let env: Environment;
  let sql: Client;

  before(async () => {
    simulator = await startSimulator();
    stripe = createStripe(readStripeConfig(simulator.env));
  });
  beforeEach(async () => {
    database = await createTestDatabase();
    env = { ...simulator.env, DATABASE_URL: database.url };
    sql = new Client({ connectionString: database.url });
    await sql.connect();
  });
  afterEach(async () => {
    await sql.end();
    await database.drop();
  });
  after(() => simulator?.stop());

  /** Consumers as in `Planted`. */
  async function plantAccounts(count: number): Promise<Planted[]> {
    const accounts = await createTestAccounts(database.url, count, 10);
    const charges = accounts.flatMap(({ consumerId }) =>
      [1, 2].map((dollar) => ({
        id: randomUUIDv7(),
        consumer: uuidOf('consumer', consumerId),
        dollar,
      })),
    );
    await sql.query(
      `insert into farebox.charges (ledger, id, consumer_id, developer, tool, receipt_key,
          amount_micros, spent_micros, balance_micros)
        select c.ledger, m.id, c.id, 1, 'search', 1, 1000000, m.dollar * 1000000,
          10000000 - m.dollar * 1000000
        from unnest($1::uuid[], $2::uuid[], $3::int[]) as m (id, consumer, dollar)
        join farebox.consumers c on c.id = m.consumer`,
      [charges.map(({ id }) => id), charges.map((c) => c.consumer), charges.map((c) => c.dollar)],
    );
    await sql.query('update farebox.consumers set spent_micros = 2000000');
    await rebuilt();
    const developers = await sql.query<{ id: string }>(
      'select developer_id as id from farebox.accounts where developer_number = 1',
    );
    const topUps = await sql.query<{ id: string; consumer_id: string }>(
      'select id, consumer_id from farebox.top_ups',
    );
    return accounts.map(({ consumerId }, index) => {
      const consumer = uuidOf('consumer', consumerId) ?? '';
      return {
        consumer,
        developer: developers.rows[0]?.id ?? '',
        topUp: topUps.rows.find((row) => row.consumer_id === consumer)?.id ?? '',
        firstCharge: charges[index * 2]?.id ?? '',
        lastCharge: charges[index * 2 + 1]?.id ?? '',
      };
    });
  }

  /** For charges that nothing but SQL has made. */
  async function rebuilt(): Promise<void> {
    const pool = await createDatabase(database.url, { maxPoolSize: 1, onError: () => {} });
    await rebuildRollups(pool);
    await pool.end();
  }

  /** What it prints as JSON, whatever it exits with. */
  async function examine(...args: string[]): Promise<{ ok: boolean; findings: Finding[] }> {
    const printed = await farebox(['doctor', '--json', ...args], { env }).catch(failure);
    const text = typeof printed === 'string' ? printed : printed.stdout;
    const report = JSON.parse(text) as { ok: boolean; findings: Finding[] };
    assert.equal(report.ok, report.findings.length === 0);
    assert.equal(typeof printed === 'string', report.ok, 'it exits with 1 when a check fails');
    return report;
  }

  it('lists the checks that passed and exits with 0', async () => {
    await plantAccounts(3);
    assert.deepEqual(await examine(), { ok: true, findings: [] });
    const printed = await farebox(['doctor'], { env });
    assert.match(printed, /^All checks passed:\n/);
    assert.match(printed, /\n {2}spent is the sum of charges\n/);
    assert.match(printed, /\n {2}the ledger agrees with the processor\n$/);
    assert.doesNotMatch(await farebox(['doctor', '--no-processor'], { env }), /processor/);
  });

  it('finds each fault that is planted, names the offender, and no other', async () => {
    const planted = await plantAccounts(PLANTS.length);
    await sql.query(GUARDS);
    await sql.query('insert into farebox.reconciliation (walked_until) values (now())');
    for (const [index, { statements }] of PLANTS.entries()) {
      for (const text of statements) await sql.query(text, [planted[index]?.consumer]);
    }
    const { findings } = await examine('--no-processor');
    assert.deepEqual(
      new Set(findings.map(({ check }) => check)),
      new Set<string>(CHECK_NAMES),
      'a check that nothing planted here proves',
    );
    for (const [index, { what, finds }] of PLANTS.entries()) {
      for (const [check, ...oneOf] of finds(planted[index] as Planted)) {
        const found = findings.findIndex(
          (finding) =>
            finding.check === check &&
            (oneOf.includes(finding.subject) || oneOf.includes(finding.detail)),
        );
        assert.ok(found >= 0, `${what}: "${check}" does not name ${oneOf.join(' or ')}`);
        findings.splice(found, 1);
      }
    }
    assert.deepEqual(findings, [], 'findings that nobody planted');
  });

  it('finds a minute whose mark was lost, and one that is marked in vain', async () => {
    const [planted] = await plantAccounts(1);
    for (const marks of [
      'charged_minutes & charged_minutes - 1',
      'charged_minutes | ~(-1::int8 << 60)',
    ]) {
      await sql.query(`update farebox.earnings set charged_minutes = ${marks} where span = 'hour'`);
      const { findings } = await examine('--no-processor');
      assert.deepEqual(
        findings.map(({ check, subject }) => [check, subject]),
        [[HOURS, `developer ${planted?.developer}`]],
      );
      await rebuilt();
      assert.deepEqual((await examine('--no-processor')).findings, []);
    }
  });

  const late = async () =>
    (await examine('--no-processor')).findings.map(({ check, detail }) => [check, detail]);
  const missing = async () => (await examine()).findings.map(({ subject }) => subject);

  it('misses a reconciliation that is overdue, once there are top-ups of that age', async () => {
    await plantAccounts(1);
    await sql.query(`update farebox.top_ups set created_at = now() - interval '2 hours'`);
    assert.deepEqual(await late(), [], 'booked by hand, so the processor knows nothing of it');
    await sql.query(`update farebox.top_ups set method = 'checkout'`);
    assert.deepEqual(await late(), [
      ['the last whole reconciliation is recent', 'ended at no time'],
    ]);
    await sql.query(`insert into farebox.reconciliation (walked_until) values (now())`);
    assert.deepEqual(await late(), []);
    await sql.query(
      `update farebox.reconciliation set walked_until = now() - interval '76 minutes'`,
    );
    assert.equal((await late()).length, 1);
  });

  it('misses schedules that Temporal does not have', async () => {
    env = {
      ...env,
      TEMPORAL_ADDRESS: process.env['TEST_TEMPORAL_ADDRESS'],
      TEMPORAL_NAMESPACE: await createTestNamespace(),
    };
    assert.deepEqual(await missing(), [
      'farebox/rollUpEarnings',
      'farebox/expireHolds',
      'farebox/ensurePartitions',
      'farebox/reconcileTopUps',
    ]);
    const temporal = createTemporalClient(readTemporalConfig(env));
    await ensureSchedules(temporal, schedulesOf(readScheduleConfig(env)));
    await temporal.close();
    assert.deepEqual(await missing(), []);
  });

  it('prints a line for each finding, with its numbers, and exits with 1', async () => {
    const [planted] = await plantAccounts(1);
    await sql.query('delete from farebox.movements');
    const failed = await farebox(['doctor', '--no-processor'], { env }).catch(failure);
    assert.ok(typeof failed !== 'string');
    assert.equal(failed.code, 1);
    assert.deepEqual(failed.stdout.trimEnd().split('\n'), [
      '2 checks failed:',
      `credited is the sum of movements: consumer ${planted?.consumer}, credited 10000000, movements 0`,
      `a completed top-up is credited once, in full: top-up ${planted?.topUp}, ` +
        'completed of 10000000, credited 0 by 0 movements',
    ]);
  });

  it('exits with 2 and says why, as JSON when asked, when it cannot reach the database', async () => {
    const away = { ...env, DATABASE_URL: 'postgres://farebox@127.0.0.1:1/farebox' };
    const failed = await farebox(['doctor', '--json'], { env: away }).catch(failure);
    assert.ok(typeof failed !== 'string');
    assert.equal(failed.code, 2);
    const { ok, error } = JSON.parse(failed.stdout) as { ok: null; error: { message: string } };
    assert.equal(ok, null);
    assert.match(error.message, /ECONNREFUSED/);
  });

  it('exits with 2 and names Stripe and the reason when it cannot reach Stripe', async () => {
    const away = { ...env, STRIPE_API_BASE: 'http://127.0.0.1:1' };
    const failed = await farebox(['doctor'], { env: away }).catch(failure);
    assert.ok(typeof failed !== 'string');
    assert.equal(failed.code, 2);
    assert.equal(failed.stdout, '');
    assert.match(
      failed.stderr,
      /^farebox: could not check: Stripe could not be reached: .*127\.0\.0\.1:1/,
    );
  });

  it('holds the ledger against the processor', async () => {
    const [credited, paid, paidTwice, paidLess, neverCredited] = (await plantAccounts(5)).map(
      ({ topUp }) => topUp,
    );
    // Booked by hand they need no payment; through the processor they do.
    await sql.query(`update farebox.top_ups set method = 'checkout'`);
    const customer = await stripe.customers.create();
    const payAtProcessor = (topUp: string | undefined, amount: number) =>
      stripe.paymentIntents.create({
        amount,
        currency: 'usd',
        customer: customer.id,
        payment_method: 'pm_card_visa',
        confirm: true,
        off_session: true,
        metadata: { top_up_id: wireId('topUp', topUp ?? '') },
      });
    await payAtProcessor(paid, 1_000);
    await payAtProcessor(paidTwice, 500);
    await payAtProcessor(paidTwice, 500);
    await payAtProcessor(paidLess, 999);
    await payAtProcessor(neverCredited, 1_000);
    await sql.query(
      `with gone as (delete from farebox.movements where top_up_id = $1 returning consumer_id),
         spent as (delete from farebox.charges where consumer_id in (select consumer_id from gone)),
         lot as (delete from farebox.lots where top_up_id = $1),
         pending as (update farebox.top_ups set status = 'pending' where id = $1)
       update farebox.consumers set credited_micros = 0, spent_micros = 0
       where id in (select consumer_id from gone)`,
      [neverCredited],
    );
    await rebuilt();
    const CREDITED = 'what is credited was paid at the processor';
    const PAID = 'what was paid at the processor is credited once';
    const { findings } = await examine();
    const expected = [
      [CREDITED, credited, 'credited 10000000, paid 0'],
      [CREDITED, paidLess, 'credited 10000000, paid 9990000'],
      [PAID, paidLess, 'paid 9990000 in 1 payments, credited 10000000'],
      [PAID, paidTwice, 'paid 10000000 in 2 payments, credited 10000000'],
      [PAID, neverCredited, 'paid 10000000 in 1 payments, credited 0'],
    ] as const;
    assert.deepEqual(
      new Set(findings.map((finding) => JSON.stringify(finding))),
      new Set(
        expected.map(([check, topUp, detail]) =>
          JSON.stringify({ check, subject: `top-up ${topUp}`, detail }),
        ),
      ),
    );
  });

  it('holds refunds and disputes against the processor, one by one', async () => {
    const [planted] = await plantAccounts(1);
    await sql.query(`update farebox.top_ups set method = 'checkout'`);
    const { id: intent } = await stripe.paymentIntents.create({
      amount: 1_000,
      currency: 'usd',
      customer: (await stripe.customers.create()).id,
      payment_method: 'pm_card_visa',
      confirm: true,
      off_session: true,
      metadata: { top_up_id: wireId('topUp', planted?.topUp ?? '') },
    });
    const refund = await stripe.refunds.create({ payment_intent: intent, amount: 400 });
    await sql.query(
      `insert into farebox.reversals (id, ledger, consumer_id, top_up_id, kind, status, amount_micros,
          taken_micros, processor_id)
        select uuidv7(), ledger, consumer_id, id, 'dispute', 'lost', 1000000, 0, 'dp_gone'
        from farebox.top_ups where id = $1`,
      [planted?.topUp],
    );
    const check = 'refunds and disputes are as the processor shows them';
    assert.deepEqual(
      (await examine()).findings.filter((finding) => finding.check === check),
      [
        { check, subject: 'dp_gone', detail: 'ledger: lost 1000000, processor: nothing' },
        { check, subject: refund.id, detail: 'ledger: nothing, processor: made 4000000' },
      ],
    );
  });
});

interface Failure {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function failure(error: Failure): Failure {
  return error;
}
