/**
 * The database is restored to a moment, from a real base backup and archived WAL, while Stripe is ahead of it. One
 * command takes over what Stripe has: every payment is credited once, and no card is charged twice. Restored a minute
 * later, and again a week later, when Stripe has forgotten the idempotency keys.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { DAY_MS } from '../../src/domain/durations.ts';
import { uuidFloor, wireId } from '../../src/domain/ids.ts';
import { asMicros } from '../../src/domain/money.ts';
import { row, sql } from '../../src/store/database.ts';
import { archiveMonth } from '../../src/store/charges/archive-month.ts';
import { ensureChargePartitions } from '../../src/store/charges/partitions.ts';
import { rollUp } from '../../src/store/earnings/rollups.ts';
import { newDraft, post } from '../support/charge-drafts.ts';
import { changeConsent } from '../../src/store/top-ups/monthly-ceiling.ts';
import { isRelayRunning } from '../../src/store/outbox.ts';
import { getTopUp, type TopUp } from '../../src/store/top-ups/top-ups.ts';
import { proveBooks } from '../support/books.ts';
import { control } from '../support/payments.ts';
import {
  startRestorablePostgres,
  type RestorablePostgres,
} from '../support/restorable-postgres.ts';
import { farebox, until } from '../support/stack.ts';
import { openTopUpHarness, type Consumer, type TopUpHarness } from '../support/top-up-harness.ts';

const balanceRow = row(Type.Object({ dollars: Type.Integer() }));
const countRow = row(Type.Object({ count: Type.Integer() }));
/** More requests than are lost until the moment is chosen. */
const MANY = 1_000;

/** Without the comparison with Stripe, where a person is still to act, and what workers have to deliver. */
const MONEY_PARTS = ['schema', 'balances', 'top-ups', 'charges', 'earnings'] as const;

interface Outcome {
  readonly entered: readonly { topUpId: string; method: string; status: string; amount: number }[];
  readonly credited: readonly string[];
  readonly differences: readonly { topUpId: string; kind: string }[];
}

describe('a restored database', () => {
  let postgres: RestorablePostgres;
  let harness: TopUpHarness;
  let moment: string;
  const consumers: Record<string, Consumer> = {};
  const topUps: Record<string, TopUp> = {};
  let unpaidUrl: string | null;
  let unknownPayment: string;

  before(async () => {
    postgres = await startRestorablePostgres();
    harness = await openTopUpHarness({}, undefined, {
      url: postgres.url,
      drop: () => postgres.remove(),
    });
    const worker = await harness.startWorker();
    await begin();
    await postgres.backUp();
    await Promise.all([beginInFlight(), chooseMoment()]);
    await liveOn();
    await worker.stop();
  });
  after(async () => {
    if (harness) await harness.close();
    else await postgres?.remove();
  });

  for (const { later, forgets, balances } of [
    { later: 'a minute later', forgets: false, balances: { later: 19 } },
    // What was paid after the first restore is ahead of the second.
    { later: 'a week later', forgets: true, balances: { later: 34 } },
  ]) {
    it(`is brought up to what Stripe shows, ${later}`, async () => {
      await postgres.restoreTo(moment);
      assert.deepEqual(await balancesNow(), {
        direct: 5,
        checkout: 5,
        first: 0,
        open: 0,
        refunded: 10,
        disputed: 10,
        later: 5,
        automatic: 5,
      });
      assert.equal(await inFlight(), 3);
      if (forgets) await aWeekPasses();

      const { entered, credited, differences } = await takeOver();
      const paid = ['direct', 'checkout', 'first', 'open', 'later', 'automatic'];
      if (forgets) paid.push('unpaid');
      assert.deepEqual(credited.toSorted(), paid.map(idOf).toSorted());
      assert.deepEqual(
        Object.fromEntries(
          entered.map(({ topUpId, method, amount, status }) => [
            topUpId,
            `${method} ${amount} ${status}`,
          ]),
        ),
        {
          [idOf('later')]: 'direct 14 completed',
          [idOf('automatic')]: 'direct 20 completed',
          [idOf('unpaid')]: `checkout 15 ${forgets ? 'completed' : 'pending'}`,
        },
      );
      assert.deepEqual(
        differences.map(({ topUpId, kind }) => [topUpId, kind]),
        [[idOf('unknown'), 'unknown_top_up']],
      );
      const expected = {
        direct: 17,
        checkout: 18,
        first: 13,
        open: 11,
        refunded: 0,
        disputed: 0,
        automatic: 25,
        ...balances,
      };
      assert.deepEqual(await balancesNow(), expected);
      await proveBooks(harness.env, { only: MONEY_PARTS });

      assert.deepEqual((await takeOver()).credited, [], 'a repetition credits nothing');
      const worker = await harness.startWorker();
      await until(() => isRelayRunning(harness.database));
      await assert.rejects(
        farebox(['reconcile', '--after-restore'], { env: harness.env }),
        /A worker is running\. Stop all workers/,
      );
      if (!forgets) {
        await harness.pay(unpaidUrl);
        await harness.statusBecomes(topUps['unpaid']!, 'completed');
      }
      await until(async () => (await harness.waitingNotices()) === 0);
      await worker.stop();
      assert.deepEqual(await balancesNow(), { ...expected, later: 34 });
      assert.deepEqual(await takenCents(), {
        direct: [1200],
        checkout: [1300],
        first: [1300],
        open: [1100],
        unpaid: [1500],
        refunded: [1000],
        disputed: [1000],
        later: [1400],
        automatic: [2000],
        unknown: [1600],
        archived: [500],
      });
    });
  }

  it('has nothing off once a person has refunded what belongs to no account', async () => {
    await harness.stripe.refunds.create({ payment_intent: unknownPayment });
    assert.deepEqual((await takeOver()).differences, []);
    await proveBooks(harness.env);
  });

  /** All that is a moment before the backup. */
  async function begin(): Promise<void> {
    for (const name of [
      'direct',
      'checkout',
      'first',
      'open',
      'refunded',
      'disputed',
      'later',
      'automatic',
    ]) {
      await newConsumer(name);
    }
    for (const name of ['direct', 'checkout', 'later', 'automatic']) await payDirectly(name, 5);
    for (const name of ['refunded', 'disputed']) await payDirectly(name, 10);
    topUps['open'] = await harness.checkout(consumers['open']!, 11);
    await archiveAMonth();
  }

  /** Sums of archived charges are restored like everything else. */
  async function archiveAMonth(): Promise<void> {
    const { database } = harness;
    const madeMs = Date.now() - 200 * DAY_MS;
    await ensureChargePartitions(postgres.url, madeMs);
    await newConsumer('archived');
    await payDirectly('archived', 5);
    const id = uuidFloor(madeMs).slice(0, 24) + randomUUID().slice(24);
    await post(database, [{ ...newDraft(consumers['archived']!, 1_000_000), id }]);
    while ((await rollUp(database)).hasMore);
    const month = new Date(madeMs).toISOString().slice(0, 7);
    assert.equal((await archiveMonth(database, month, Date.now())).kind, 'archived');
  }

  /** Their rows are there. Stripe gets no request for them until the moment: for the last, none for its customer. */
  async function beginInFlight(): Promise<void> {
    for (const path of ['/v1/payment_intents', '/v1/checkout/sessions', '/v1/customers']) {
      await harness.control('faults', { method: 'POST', path, kind: 'drop', times: MANY });
    }
    await Promise.all(
      (
        [
          ['direct', 'direct', 12],
          ['checkout', 'checkout', 13],
          ['first', 'checkout', 13],
        ] as const
      ).map(async ([name, method, dollars]) => {
        const result = await harness.request(consumers[name]!, method, dollars);
        assert.ok('topUp' in result, result.kind);
        topUps[name] = result.topUp;
      }),
    );
  }

  /** Between the rows of these top-ups and what Stripe makes for them: it has lost a request for each. */
  async function chooseMoment(): Promise<void> {
    await until(async () => {
      const faults = await harness.faults();
      const haveLost = faults.length === 3 && faults.every(({ times }) => times < MANY);
      return haveLost && (await inFlight()) === 3;
    });
    moment = await postgres.moment();
    await harness.forgetFaults();
  }

  const inFlight = () =>
    harness.database.oneFirst(sql.type(countRow)`
      select count(*) as count from farebox.top_ups
      where status = 'pending' and opened_at is not null and session_id is null
    `);

  /** All that is lost. */
  async function liveOn(): Promise<void> {
    await harness.statusBecomes(topUps['direct']!, 'completed');
    for (const name of ['checkout', 'first', 'open']) await payCheckout(name);
    await harness.stripe.refunds.create({ payment_intent: await paymentOf('refunded') });
    await harness.control('disputes', { payment_intent: await paymentOf('disputed') });
    await harness.statusBecomes(topUps['refunded']!, 'refunded');
    await harness.statusBecomes(topUps['disputed']!, 'disputed');
    await payDirectly('later', 14);
    topUps['unpaid'] = await harness.checkout(consumers['later']!, 15);
    unpaidUrl = topUps['unpaid'].sessionUrl;
    await harness.topUpAutomatically(consumers['automatic']!, 50);
    await harness.charge(consumers['automatic']!);
    await until(async () => {
      const [automatic] = await harness.automaticTopUps(consumers['automatic']!);
      if (automatic) topUps['automatic'] = automatic;
      return automatic?.status === 'completed';
    });
    await newConsumer('unknown');
    await payDirectly('unknown', 16);
    unknownPayment = await paymentOf('unknown');
  }

  async function newConsumer(name: string): Promise<void> {
    const consumer = await harness.newConsumer();
    consumers[name] = consumer;
    await changeConsent(harness.database, consumer.consumerId, {
      ceilingMicros: asMicros(1_000_000_000),
      givenBy: 'operator',
    });
  }

  async function payDirectly(name: string, dollars: number): Promise<void> {
    const result = await harness.requestDirect(consumers[name]!, dollars);
    assert.ok('topUp' in result, result.kind);
    topUps[name] = result.topUp;
    await harness.statusBecomes(result.topUp, 'completed');
  }

  async function payCheckout(name: string): Promise<void> {
    const topUp = topUps[name]!;
    const { sessionUrl } = await until(async () => {
      const now = await getTopUp(harness.database, topUp.id);
      return now.sessionUrl !== null && now;
    });
    await harness.pay(sessionUrl);
    await harness.statusBecomes(topUp, 'completed');
  }

  async function paymentOf(name: string): Promise<string> {
    return (await harness.topUp(topUps[name]!.id)).paymentIntentId ?? '';
  }

  async function aWeekPasses(): Promise<void> {
    await control(harness.simulator, 'idempotency-keys', undefined, 'DELETE');
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = created_at - interval '7 days'
      where status = 'pending'
    `);
  }

  /** It exits with 1 while something differs. */
  async function takeOver(): Promise<Outcome> {
    const text = await farebox(['reconcile', '--after-restore', '--json'], {
      env: harness.env,
    }).catch((error: { stdout?: string }) => {
      if (!error.stdout) throw error;
      return error.stdout;
    });
    return JSON.parse(text) as Outcome;
  }

  async function balancesNow(): Promise<Record<string, number>> {
    const all = await Promise.all(
      Object.entries(consumers)
        .filter(([name]) => name !== 'unknown' && name !== 'archived')
        .map(async ([name, { consumerId }]) => {
          const dollars = await harness.database.oneFirst(sql.type(balanceRow)`
            select (credited_micros - spent_micros - held_micros) / 1000000 as dollars
            from farebox.consumers where id = ${consumerId}
          `);
          return [name, dollars] as const;
        }),
    );
    return Object.fromEntries(all);
  }

  /** What Stripe took for each. */
  async function takenCents(): Promise<Record<string, number[]>> {
    const all = await Promise.all(
      Object.entries(topUps).map(async ([name, topUp]) => {
        const payments = await harness.paymentsOf(topUp);
        return [name, payments.map(({ amount }) => amount)] as const;
      }),
    );
    return Object.fromEntries(all);
  }

  const idOf = (name: string) => wireId('topUp', topUps[name]!.id);
});
