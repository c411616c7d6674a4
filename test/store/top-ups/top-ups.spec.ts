/** The rows of top-ups and their credits: Postgres decides, under repeated and concurrent requests. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { Type } from 'typebox';
import type { Micros } from '../../../src/domain/money.ts';
import { OPEN_TOP_UPS_MAX } from '../../../src/domain/top-up.ts';
import { createAccounts } from '../../../src/store/accounts/accounts.ts';
import { changeConsent } from '../../../src/store/top-ups/monthly-ceiling.ts';
import { creditManually, creditTopUp } from '../../../src/store/top-ups/credit-top-up.ts';
import { countRow, row, sql, type Database } from '../../../src/store/database.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { recordUnpaid } from '../../../src/store/top-ups/payment-evidence.ts';
import { admitTopUp } from '../../../src/store/top-ups/admit-top-up.ts';
import { acceptTopUp, claimTopUp, withdrawTopUp } from '../../../src/store/top-ups/claim-top-up.ts';
import {
  planSession,
  recordPaymentIntent,
  recordSession,
} from '../../../src/store/top-ups/plan-payment.ts';
import {
  findTopUp,
  findTopUpOf,
  listTopUpsOf,
  type NewTopUp,
  type TopUp,
} from '../../../src/store/top-ups/top-ups.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { credit, expire, fail, showPaid } from '../../support/evidence.ts';
import { until } from '../../support/stack.ts';

const topicRow = row(Type.Object({ topic: Type.String() }));
const lotRow = row(Type.Object({ from: Type.Integer(), to: Type.Integer() }));
const consumerRow = row(Type.Object({ ledger: Type.Integer(), credited: Type.Integer() }));

describe('top-ups in the database', () => {
  let ledger: TestLedger;
  let database: Database;

  before(async () => {
    ledger = await openTestLedger();
    ({ database } = ledger);
  });

  after(async () => {
    await ledger.drop();
  });

  it('creates one row for one idempotency key, under concurrent requests', async () => {
    const consumer = await newConsumer();
    const results = await Promise.all(
      Array.from({ length: 8 }, () => admit(consumer, { idempotencyKey: 'key' })),
    );
    const ids = results.map((result) => ('topUp' in result ? result.topUp.id : result.kind));
    assert.equal(new Set(ids).size, 1);
    assert.equal(results.filter(({ kind }) => kind === 'admitted').length, 1);
    assert.equal((await admit(await newConsumer(), { idempotencyKey: 'key' })).kind, 'admitted');
  });

  it('finds the top-up of a key among the most that may be open, under concurrent requests', async () => {
    const consumer = await newConsumer();
    for (let open = 1; open < OPEN_TOP_UPS_MAX; open += 1) await admitted(consumer);
    const results = await atOnce(consumer, [
      { idempotencyKey: 'key' },
      { idempotencyKey: 'key' },
      { idempotencyKey: 'key' },
    ]);
    assert.deepEqual(
      results.map(({ kind }) => kind),
      ['admitted', 'known', 'known'],
    );
    assert.equal((await admit(consumer)).kind, 'too_many_open');
  });

  it('admits a checkout and a direct top-up of one consumer at once, without a deadlock', async () => {
    const consumer = await newConsumer();
    await changeConsent(database, consumer.consumerId, {
      ceilingMicros: 100_000_000 as Micros,
      givenBy: 'operator',
    });
    const results = await atOnce(consumer, [{ method: 'checkout' }, { method: 'direct' }]);
    assert.deepEqual(
      results.map(({ kind }) => kind),
      ['admitted', 'admitted'],
    );
  });

  it('refuses a key that named another amount or method', async () => {
    const consumer = await newConsumer();
    await admit(consumer, { idempotencyKey: 'key' });
    const other = { idempotencyKey: 'key', amountMicros: 11_000_000 as Micros };
    assert.deepEqual(await admit(consumer, other), { kind: 'key_reused' });
    const direct = { idempotencyKey: 'key', method: 'direct' as const };
    assert.deepEqual(await admit(consumer, direct), { kind: 'key_reused' });
  });

  it('withdraws a top-up or opens it, never both', async () => {
    const consumer = await newConsumer();
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const { id } = await admitted(consumer);
        const [withdrawn, opened] = await Promise.all([
          withdrawTopUp(database, id),
          claimTopUp(database, id),
        ]);
        assert.equal(withdrawn, opened === null);
        assert.equal(withdrawn, (await findTopUp(database, id)) === null);
        return withdrawn;
      }),
    );
    assert.equal(outcomes.length, 20);
  });

  it('withdraws a top-up or accepts it, never both', async () => {
    const consumer = await newConsumer();
    for (let count = 0; count < 20; count += 1) {
      const { id } = await admitted(consumer);
      const [withdrawn] = await Promise.all([
        withdrawTopUp(database, id),
        acceptTopUp(database, id),
      ]);
      assert.equal(withdrawn, (await findTopUp(database, id)) === null);
      assert.equal(await withdrawTopUp(database, id), false);
    }
  });

  it('have a notice until their workflow takes them up, or the request withdraws them', async () => {
    const consumer = await newConsumer();
    const [taken, withdrawn] = [await admitted(consumer), await admitted(consumer)];
    for (const { id } of [taken, withdrawn]) assert.deepEqual(await topicsOf(id), ['top_up']);
    await claimTopUp(database, taken.id);
    await withdrawTopUp(database, withdrawn.id);
    for (const { id } of [taken, withdrawn]) assert.deepEqual(await topicsOf(id), []);
    assert.equal(await withdrawTopUp(database, taken.id), false);
  });

  it('credits once for many simultaneous calls, as a lot that starts where the last one ended', async () => {
    const consumer = await newConsumer();
    const topUps = [await admitted(consumer), await admitted(consumer), await admitted(consumer)];
    const calls = topUps.flatMap(({ id }) => Array.from({ length: 5 }, () => id));
    const credited = await Promise.all(calls.map((id) => credit(database, id)));
    assert.equal(credited.filter((result) => result === 'credited').length, 3);
    assert.equal(await creditedMicros(consumer), 30_000_000);
    assert.deepEqual(await lotsOf(consumer), [
      { from: 0, to: 10_000_000 },
      { from: 10_000_000, to: 20_000_000 },
      { from: 20_000_000, to: 30_000_000 },
    ]);
    for (const { id } of topUps) {
      const topUp = await findTopUp(database, id);
      assert.equal(topUp?.status, 'completed');
      assert.ok(topUp.completedAt);
    }
  });

  it('keeps the first verdict of an unpaid top-up, and names no payment after it', async () => {
    const consumer = await newConsumer();
    const [canceled, declined] = [await admitted(consumer), await admitted(consumer)];
    const expired = { kind: 'expired' } as const;
    const failed = { kind: 'failed', code: 'card_declined' } as const;
    for (const [topUp, first, other] of [
      [canceled, expired, failed],
      [declined, failed, expired],
    ] as const) {
      for (const seen of [first, other]) {
        const { verdict } = await recordUnpaid(database, topUp, seen);
        assert.equal(verdict, first.kind);
      }
      const named = await recordPaymentIntent(database, topUp.id, `pi_late_${topUp.id}`);
      assert.equal(named.paymentIntentId, null);
    }
  });

  it('records no verdict on a payment that the row does not name any more', async () => {
    const consumer = await newConsumer();
    const asked = await admitted(consumer);
    const named = await recordPaymentIntent(database, asked.id, `pi_${asked.id}`);
    assert.equal((await recordUnpaid(database, asked, { kind: 'expired' })).verdict, null);
    assert.equal((await recordUnpaid(database, named, { kind: 'expired' })).verdict, 'expired');
  });

  it('lets a payment win over failure and expiry, in any order', async () => {
    const consumer = await newConsumer();
    const failure = { code: 'card_declined', message: 'no' };
    const [late, early] = [await admitted(consumer), await admitted(consumer)];
    await fail(database, late.id, failure, 1_000);
    await credit(database, late.id);
    await credit(database, early.id);
    await fail(database, early.id, failure, 1_000);
    await expire(database, early.id);
    for (const { id } of [late, early]) {
      const topUp = await findTopUp(database, id);
      assert.deepEqual([topUp?.status, topUp?.failureCode], ['completed', null]);
    }
  });

  it('adds manual credits for a thousand consumers, and again for one of them', async () => {
    const consumers = await newConsumers(1_000);
    const credits = consumers.map((c) => ({ ...c, amountMicros: 3 as Micros }));
    const ids = await database.transaction((tx) => creditManually(tx, credits));
    assert.equal(new Set(ids).size, 1_000);
    await database.transaction((tx) => creditManually(tx, credits.slice(0, 1)));
    assert.equal(await creditedMicros(consumers[0]!), 6);
    assert.equal(await creditedMicros(consumers[999]!), 3);
    assert.deepEqual(await lotsOf(consumers[0]!), [
      { from: 0, to: 3 },
      { from: 3, to: 6 },
    ]);
    const [newest] = await listTopUpsOf(database, consumers[0]!.consumerId, { limit: 1 });
    assert.deepEqual([newest?.method, newest?.status], ['manual', 'completed']);
  });

  it('adds nothing from a batch that names a consumer twice', async () => {
    const consumer = await newConsumer();
    const credit = { ...consumer, amountMicros: 3 as Micros };
    await assert.rejects(database.transaction((tx) => creditManually(tx, [credit, credit])));
    assert.equal(await creditedMicros(consumer), 0);
    assert.deepEqual(await listTopUpsOf(database, consumer.consumerId, { limit: 10 }), []);
  });

  it('keeps the first session and the first payment intent', async () => {
    const { id } = await admitted(await newConsumer());
    await recordSession(database, id, { id: `cs_1_${id}`, url: 'https://first' });
    const session = await recordSession(database, id, { id: `cs_2_${id}`, url: 'https://second' });
    assert.deepEqual([session.sessionId, session.sessionUrl], [`cs_1_${id}`, 'https://first']);
    await recordPaymentIntent(database, id, `pi_1_${id}`);
    const intent = await recordPaymentIntent(database, id, `pi_2_${id}`);
    assert.equal(intent.paymentIntentId, `pi_1_${id}`);
  });

  it('keeps the expiry time of a session while it is far enough away', async () => {
    const { id } = await admitted(await newConsumer());
    assert.equal((await planSession(database, id, 24 * 60)).sessionExpiresAt, null);
    const first = await planSession(database, id, 30);
    const inMs = Date.parse(first.sessionExpiresAt ?? '') - Date.now();
    assert.ok(inMs > 35 * 60_000 && inMs < 36 * 60_000);
    const again = await planSession(database, id, 60);
    assert.equal(again.sessionExpiresAt, first.sessionExpiresAt);
    await database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set session_expires_at = now() + interval '29 minutes' where id = ${id}
    `);
    const later = await planSession(database, id, 30);
    assert.ok(String(later.sessionExpiresAt) >= String(first.sessionExpiresAt));
  });

  it("plans an expiry that Stripe accepts when its clock and PostgreSQL's differ by five minutes", async () => {
    const SKEW_MS = 300_000;
    for (const minutes of [30, 31, 35, 36, 60, 1_434, 1_435, 1_439, 1_440]) {
      const { id } = await admitted(await newConsumer());
      const { sessionExpiresAt } = await planSession(database, id, minutes);
      if (sessionExpiresAt === null) continue;
      const inMs = Date.parse(sessionExpiresAt) - Date.now();
      assert.ok(inMs - SKEW_MS >= 30 * 60_000, `${minutes} minutes: in ${inMs} ms`);
      assert.ok(inMs + SKEW_MS < 24 * 3_600_000, `${minutes} minutes: in ${inMs} ms`);
    }
    // One that was planned long before the call is planned again before it is too near for that.
    const { id } = await admitted(await newConsumer());
    await database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set session_expires_at = now() + interval '34 minutes 50 seconds' where id = ${id}
    `);
    const again = await planSession(database, id, 30);
    assert.ok(Date.parse(again.sessionExpiresAt ?? '') - Date.now() > 35 * 60_000);
  });

  it('counts what the month was credited and what is pending against its ceiling, and nothing else', async () => {
    const consumer = await newConsumer();
    await changeConsent(database, consumer.consumerId, {
      ceilingMicros: 20_000_000 as Micros,
      givenBy: 'operator',
    });
    const direct = { method: 'direct' as const };
    const [first, second] = [await admitted(consumer, direct), await admitted(consumer, direct)];
    assert.equal((await admit(consumer, direct)).kind, 'consent_ceiling_reached');
    await fail(database, first.id, { code: 'card_declined', message: 'no' }, 1_000);
    await credit(database, second.id);
    const late = await admitted(consumer, direct);
    const full = { kind: 'consent_ceiling_reached', leftMicros: 0 };
    assert.deepEqual(await admit(consumer, direct), full);
    // As if all of this had been in an earlier month. The pending one may still be paid in this month.
    await database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = created_at - interval '32 days',
        completed_at = completed_at - interval '32 days'
      where consumer_id = ${consumer.consumerId}
    `);
    await admitted(consumer, direct);
    assert.deepEqual(await admit(consumer, direct), full);
    await credit(database, late.id);
    assert.deepEqual(await admit(consumer, direct), full);
  });

  it('raises the ceiling that doctor compares when one is paid after its end, also while another is admitted', async () => {
    const consumer = await newConsumer();
    await changeConsent(database, consumer.consumerId, {
      ceilingMicros: 10_000_000 as Micros,
      givenBy: 'operator',
    });
    const { id } = await admitted(consumer, { method: 'direct' });
    await expire(database, id);
    await showPaid(database, id);
    const client = new Client({ connectionString: ledger.url });
    await client.connect();
    const waiting = () =>
      database.oneFirst(sql.type(countRow)`
        select count(*) as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'
      `);
    // Stops the other one after it was admitted, before it commits.
    await client.query('begin');
    await client.query('lock table farebox.outbox in share mode');
    const other = admit(consumer, { method: 'direct' });
    await until(async () => (await waiting()) === 1);
    const credited = creditTopUp(database, id);
    await Promise.race([credited, until(async () => (await waiting()) === 2)]);
    await client.end();
    assert.equal((await other).kind, 'admitted');
    assert.equal(await credited, 'credited');
    const findings = await examineLedger(database, { parts: ['top-ups'] });
    assert.deepEqual(
      findings.filter(({ subject }) => subject.endsWith(consumer.consumerId)),
      [],
    );
    const full = { kind: 'consent_ceiling_reached', leftMicros: 0 };
    assert.deepEqual(await admit(consumer, { method: 'direct' }), full);
  });

  it('shows consumers only their own top-ups, newest first, page by page', async () => {
    const [mine, other] = [await newConsumer(), await newConsumer()];
    const made: string[] = [];
    for (let n = 0; n < 3; n += 1) made.push((await admitted(mine)).id);
    await admitted(other);
    // Ids of one millisecond have no order.
    const ids = made.toSorted().toReversed();
    const first = await listTopUpsOf(database, mine.consumerId, { limit: 2 });
    const rest = await listTopUpsOf(database, mine.consumerId, { limit: 2, beforeId: ids[1] });
    assert.deepEqual(
      [...first, ...rest].map(({ id }) => id),
      ids,
    );
    assert.ok(await findTopUpOf(database, mine.consumerId, ids[0]!));
    assert.equal(await findTopUpOf(database, other.consumerId, ids[0]!), null);
  });

  type Consumer = Pick<NewTopUp, 'ledger' | 'consumerId' | 'accountId'>;
  let accounts = 0;

  async function newConsumers(count: number): Promise<Consumer[]> {
    accounts += 1;
    const requests = Array.from({ length: count }, (_, n) => ({
      email: `c${accounts}-${n}@example.com`,
      balanceMicros: 0 as Micros,
    }));
    const result = await createAccounts(database, requests, {
      keyPrefix: 'fare',
      ledgerCount: 16,
      consentCeilingMicros: undefined,
    });
    assert.ok(result.kind === 'created');
    return Promise.all(
      result.accounts.map(async ({ accountId, consumerId }) => {
        const { ledger } = await find(consumerId);
        return { ledger, consumerId, accountId };
      }),
    );
  }

  async function newConsumer(): Promise<Consumer> {
    const [consumer] = await newConsumers(1);
    return consumer!;
  }

  function admit(consumer: Consumer, changes: Partial<NewTopUp> = {}) {
    const amountMicros = 10_000_000 as Micros;
    return admitTopUp(database, { ...consumer, method: 'checkout', amountMicros, ...changes });
  }

  async function admitted(consumer: Consumer, changes: Partial<NewTopUp> = {}): Promise<TopUp> {
    const result = await admit(consumer, changes);
    assert.ok(result.kind === 'admitted', result.kind);
    return result.topUp;
  }

  /** They wait together, in this order, until the consumer's open top-ups may be counted again. */
  async function atOnce(consumer: Consumer, requests: readonly Partial<NewTopUp>[]) {
    const client = new Client({ connectionString: ledger.url });
    await client.connect();
    try {
      await client.query('select pg_advisory_lock(hashtextextended($1, 0))', [
        `farebox.top_ups ${consumer.consumerId}`,
      ]);
      const results: ReturnType<typeof admit>[] = [];
      for (const request of requests) {
        results.push(admit(consumer, request));
        await until(async () => {
          const { rowCount } = await client.query(
            `select from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'`,
          );
          return rowCount === results.length;
        });
      }
      // Who waits has not locked what the insert of the one before it needs. A deadlock would be retried, unseen.
      await client.query(
        'select from farebox.accounts where consumer_id = $1 for key share nowait',
        [consumer.consumerId],
      );
      await client.query('select pg_advisory_unlock_all()');
      return await Promise.all(results);
    } finally {
      await client.end();
    }
  }

  function find(consumerId: string) {
    return database.one(sql.type(consumerRow)`
      select ledger, credited_micros as credited from farebox.consumers where id = ${consumerId}
    `);
  }

  async function topicsOf(topUpId: string): Promise<readonly string[]> {
    return database.anyFirst(sql.type(topicRow)`
      select topic from farebox.outbox where subject_id = ${topUpId}
    `);
  }

  async function creditedMicros(consumer: Consumer): Promise<number> {
    return (await find(consumer.consumerId)).credited;
  }

  function lotsOf(consumer: Consumer) {
    return database.any(sql.type(lotRow)`
      select from_micros as from, to_micros as to from farebox.lots
      where ledger = ${consumer.ledger} and consumer_id = ${consumer.consumerId} order by from_micros
    `);
  }
});
