/** Refunds that an operator requests: taken from the balance at once, credited again when they fail. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { wireId } from '../../../src/domain/ids.ts';
import { asMicros, type Micros } from '../../../src/domain/money.ts';
import { adjustBalance } from '../../../src/store/balance/adjustments.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { row, sql, type Database } from '../../../src/store/database.ts';
import { isDatabaseUnavailable } from '../../../src/store/failures.ts';
import { creditManually } from '../../../src/store/top-ups/credit-top-up.ts';
import {
  failRefund,
  listRefundable,
  listRequestedRefunds,
  noteWaitingRefunds,
  requestRefund,
} from '../../../src/store/top-ups/request-refund.ts';
import { dismissFraudWarnings } from '../../../src/store/top-ups/reversals.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { holdConsumer } from '../../support/row-locks.ts';
import { until } from '../../support/stack.ts';
import {
  dispute,
  newPayer,
  processorId,
  refund,
  warning,
  type Payer,
} from '../../support/payer.ts';

const countRow = row(Type.Object({ count: Type.Integer() }));

describe('a refund', () => {
  let ledger: TestLedger;
  let database: Database;
  let payer: Payer;

  before(async () => {
    ledger = await openTestLedger();
    ({ database } = ledger);
  });
  beforeEach(async () => (payer = await newPayer(database)));
  afterEach(async () => assert.deepEqual(await examineLedger(database), []));
  after(async () => {
    await ledger.drop();
  });

  it('takes the unspent part of its top-up, and moves later lots down by as much', async () => {
    const [first, second] = [await payer.topUp(10_000_000), await payer.topUp(20_000_000)];
    await payer.charge(4_000_000);
    const { amountMicros } = await requested(first);
    assert.equal(amountMicros, 6_000_000);
    assert.deepEqual(await payer.lots(), [
      { topUpId: first, from: 0, to: 4_000_000 },
      { topUpId: second, from: 4_000_000, to: 24_000_000 },
    ]);
    assert.deepEqual(await payer.money(), { balance: 20_000_000, held: 0, debt: 0 });
    assert.equal(await payer.statusOf(first), 'partially_refunded');
  });

  it('leaves a fraction of a cent, which can be spent', async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.charge(3_333_333);
    assert.equal((await requested(topUp)).amountMicros, 6_660_000);
    assert.equal((await payer.money()).balance, 6_667);
    assert.equal(await payer.charge(6_667), true);
  });

  it('takes the given amount, repeatedly, and never more than is left', async () => {
    const topUp = await payer.topUp(10_000_000);
    await requested(topUp, 2_500_000);
    await requested(topUp, 2_500_000);
    assert.equal(await payer.statusOf(topUp), 'partially_refunded');
    const exceeds = { kind: 'exceeds_unspent', refundableMicros: 5_000_000 };
    assert.deepEqual(await ask(topUp, 5_010_000), exceeds);
    await requested(topUp, 5_000_000);
    assert.equal(await payer.statusOf(topUp), 'refunded');
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 0 });
    assert.equal(await payer.charge(1), false);
  });

  it('never takes more than the balance, part of which a dispute may hold', async () => {
    const [disputed, topUp] = [await payer.topUp(10_000_000), await payer.topUp(10_000_000)];
    await payer.charge(6_000_000);
    await payer.report(disputed, dispute(processorId('dp'), 10_000_000));
    assert.deepEqual(await ask(topUp, 10_000_000), {
      kind: 'exceeds_unspent',
      refundableMicros: 4_000_000,
    });
    assert.equal((await requested(topUp)).amountMicros, 4_000_000);
  });

  it('announces for each top-up the amount that it then makes, after charges, a warning and a dispute', async () => {
    const [first, second] = [await payer.topUp(10_000_000), await payer.topUp(5_000_000)];
    const announced = async () => {
      const refundable = await listRefundable(database, payer, [first, second]);
      return [refundable.get(first) ?? 0, refundable.get(second) ?? 0];
    };
    assert.deepEqual(await announced(), [10_000_000, 5_000_000]);
    await payer.charge(2_505_000);
    assert.deepEqual(await announced(), [7_490_000, 5_000_000]);
    // The warning holds $5.00 until a refund of its own top-up dismisses it.
    await payer.report(second, warning(processorId('issfr'), 5_000_000));
    await payer.charge(7_400_000);
    assert.deepEqual(await announced(), [90_000, 5_000_000]);
    // The money that the warning holds would first repay what is owed for the first.
    await payer.report(first, dispute(processorId('dp'), 3_000_000));
    assert.deepEqual(await announced(), [0, 2_090_000]);
    assert.equal((await requested(second)).amountMicros, 2_090_000);
    assert.deepEqual(await announced(), [0, 0]);
  });

  it('is refused, and changes nothing, when there is nothing to refund', async () => {
    const [spent, unpaid] = [await payer.topUp(10_000_000), await payer.open(10_000_000)];
    await payer.charge(10_000_000);
    const before = await payer.movements();
    assert.deepEqual(await ask(spent), { kind: 'exceeds_unspent', refundableMicros: 0 });
    assert.deepEqual(await ask(unpaid), { kind: 'not_refundable', status: 'pending' });
    assert.deepEqual(await ask(randomUUID()), { kind: 'not_found' });
    assert.deepEqual(await payer.movements(), before);
    assert.equal(await notices(spent), 0);
  });

  it('is refused for manual credits, and while a dispute is open or lost', async () => {
    const disputed = await payer.topUp(10_000_000);
    const dp = processorId('dp');
    await payer.report(disputed, dispute(dp, 1_000_000));
    assert.deepEqual(await ask(disputed), { kind: 'not_refundable', status: 'disputed' });
    await payer.report(disputed, dispute(dp, 1_000_000, 'lost'));
    assert.deepEqual(await ask(disputed), { kind: 'not_refundable', status: 'charged_back' });
    const credit = { ...payer, amountMicros: asMicros(10_000_000) };
    const [manual = ''] = await database.transaction((tx) => creditManually(tx, [credit]));
    assert.deepEqual(await ask(manual), { kind: 'no_payment' });
  });

  it('is recorded with the notice that makes the processor refund', async () => {
    const topUp = await payer.topUp(10_000_000);
    const { refundId } = await requested(topUp, 3_000_000);
    const [waiting] = await listRequestedRefunds(database, topUp);
    assert.deepEqual([waiting?.id, waiting?.amountMicros], [refundId, 3_000_000]);
    assert.equal(await notices(topUp), 1);
  });

  it('without an outcome after an hour is checked again, once an hour', async () => {
    const topUp = await payer.topUp(10_000_000);
    await requested(topUp, 1_000_000);
    await requested(topUp, 2_000_000);
    await database.query(sql.typeAlias('nothing')`
      update farebox.reversals set updated_at = now() - interval '61 minutes'
      where top_up_id = ${topUp}
    `);
    assert.equal(await noteWaitingRefunds(database, 3_600_000), 1);
    assert.equal(await noteWaitingRefunds(database, 3_600_000), 0);
    assert.equal(await notices(topUp), 3);
  });

  it('never pays out twice, under concurrent requests', async () => {
    const topUp = await payer.topUp(10_000_000);
    const results = await Promise.all([
      ...Array.from({ length: 10 }, () => ask(topUp, 3_000_000)),
      ...Array.from({ length: 10 }, () => payer.charge(1_000_000)),
    ]);
    const refunds = results.filter((each) => typeof each === 'object' && each.kind === 'requested');
    const charges = results.filter((each) => each === true);
    const { balance } = await payer.money();
    assert.equal(refunds.length * 3_000_000 + charges.length * 1_000_000 + balance, 10_000_000);
  });

  it('that the processor refuses is credited again, once, as a lot of the same top-up', async () => {
    const [topUp, later] = [await payer.topUp(10_000_000), await payer.topUp(5_000_000)];
    await payer.charge(4_000_000);
    const { refundId } = await requested(topUp);
    for (let n = 0; n < 3; n += 1) await failRefund(database, topUp, refundId, 'no funds');
    assert.deepEqual(await payer.lots(), [
      { topUpId: topUp, from: 0, to: 4_000_000 },
      { topUpId: later, from: 4_000_000, to: 9_000_000 },
      { topUpId: topUp, from: 9_000_000, to: 15_000_000 },
    ]);
    assert.equal(await payer.statusOf(topUp), 'completed');
    assert.equal((await requested(topUp)).amountMicros, 6_000_000);
  });

  it('that fails days after it was made is credited again, once', async () => {
    const topUp = await payer.topUp(10_000_000);
    const { refundId } = await requested(topUp);
    const re = processorId('re');
    await payer.report(topUp, refund(re, 10_000_000, 'made', refundId));
    assert.equal(await payer.statusOf(topUp), 'refunded');
    await payer.report(topUp, refund(re, 10_000_000, 'failed', refundId));
    await payer.report(topUp, refund(re, 10_000_000, 'failed', refundId));
    await failRefund(database, topUp, refundId, 'too late to matter');
    assert.equal((await payer.money()).balance, 10_000_000);
    assert.equal(await payer.statusOf(topUp), 'completed');
  });

  it('that was refused, and was made after all, is taken again', async () => {
    const topUp = await payer.topUp(10_000_000);
    const { refundId } = await requested(topUp);
    await failRefund(database, topUp, refundId, 'disputed');
    await payer.charge(4_000_000);
    await payer.report(topUp, refund(processorId('re'), 10_000_000, 'made', refundId));
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 4_000_000 });
  });

  it('that failed pays debts first', async () => {
    const [topUp, disputed] = [await payer.topUp(10_000_000), await payer.topUp(5_000_000)];
    const { refundId } = await requested(topUp);
    await payer.charge(5_000_000);
    await payer.report(disputed, dispute(processorId('dp'), 5_000_000, 'lost'));
    assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 5_000_000 });
    await failRefund(database, topUp, refundId, 'no funds');
    assert.deepEqual(await payer.money(), { balance: 5_000_000, held: 0, debt: 0 });
  });

  it('that fails, refused or later, lets the fraud warning that it lifted hold the money again', async () => {
    const topUp = await payer.topUp(10_000_000);
    await payer.charge(6_000_000);
    const issfr = processorId('issfr');
    await payer.report(topUp, warning(issfr, 10_000_000));
    const held = await payer.money();
    assert.deepEqual(held, { balance: 0, held: 4_000_000, debt: 6_000_000 });
    for (const fails of ['refused', 'later'] as const) {
      const { refundId } = await requested(topUp);
      assert.deepEqual(await payer.money(), { balance: 0, held: 0, debt: 0 });
      const re = processorId('re');
      if (fails === 'refused') {
        for (let n = 0; n < 2; n += 1) await failRefund(database, topUp, refundId, 'no funds');
      } else {
        await payer.report(topUp, refund(re, 4_000_000, 'made', refundId));
        await payer.report(topUp, refund(re, 4_000_000, 'failed', refundId));
      }
      assert.deepEqual(await payer.money(), held, fails);
      assert.equal(await payer.statusOf(topUp), 'disputed');
    }
    await payer.report(topUp, warning(issfr, 10_000_000, 'won'));
    assert.deepEqual(await payer.money(), { balance: 4_000_000, held: 0, debt: 0 });
    const dismissals = await dismissalsLogged();
    assert.equal(dismissals, 2, 'a dismissal that is undone is not another one');
  });

  it('that fails leaves a fraud warning dismissed that an operator, or another refund, dismissed', async () => {
    const topUp = await payer.topUp(10_000_000);
    const issfr = processorId('issfr');
    await payer.report(topUp, warning(issfr, 10_000_000));
    await requested(topUp, 1_000_000);
    const second = await requested(topUp, 2_000_000);
    await failRefund(database, topUp, second.refundId, 'no funds');
    assert.deepEqual(await payer.money(), { balance: 9_000_000, held: 0, debt: 0 });

    const other = await payer.topUp(5_000_000);
    await payer.report(other, warning(processorId('issfr'), 5_000_000));
    assert.equal(await dismissFraudWarnings(database, other), 1);
    const { refundId } = await requested(other);
    await failRefund(database, other, refundId, 'no funds');
    assert.deepEqual(await payer.money(), { balance: 14_000_000, held: 0, debt: 0 });
  });

  it('is made once with the key of a command, which no other refund or adjustment can use', async () => {
    const [topUp, other] = [await payer.topUp(10_000_000), await payer.topUp(10_000_000)];
    const [keyed, adjusted] = [{ idempotencyKey: randomUUID() }, { idempotencyKey: randomUUID() }];
    const first = await ask(topUp, 4_000_000, keyed);
    assert.equal(first.kind, 'requested');
    for (const amount of [4_000_000, undefined]) {
      assert.deepEqual(await ask(topUp, amount, keyed), { ...first, isReplay: true });
    }
    const adjustment = { amountMicros: asMicros(1), reason: 'a test' };
    await adjustBalance(database, payer, adjustment, adjusted);
    const balance = 16_000_001;
    assert.equal((await payer.money()).balance, balance);
    const reused = { kind: 'key_reused' };
    assert.deepEqual(await ask(topUp, 3_000_000, keyed), reused);
    assert.deepEqual(await ask(other, 4_000_000, keyed), reused);
    assert.deepEqual(await ask(topUp, 4_000_000, adjusted), reused);
    assert.deepEqual(await adjustBalance(database, payer, adjustment, keyed), reused);
    assert.equal((await payer.money()).balance, balance);
  });

  it('is made once by concurrent commands with one key', async () => {
    const topUp = await payer.topUp(10_000_000);
    const by = { idempotencyKey: randomUUID() };
    const results = await Promise.all(Array.from({ length: 5 }, () => ask(topUp, 1_000_000, by)));
    const replays = results.map((result) => 'isReplay' in result && result.isReplay);
    assert.equal(replays.length, 5);
    assert.equal(replays.filter((isReplay) => isReplay).length, 4);
    for (const result of results)
      assert.deepEqual({ ...result, isReplay: true }, { ...results[0], isReplay: true });
    assert.equal((await payer.money()).balance, 9_000_000);
  });

  it('and an adjustment of another account with one key at one moment: one is made, the other refused', async () => {
    const topUp = await payer.topUp(10_000_000);
    const others = [await newPayer(database), await newPayer(database)];
    const adjustment = { amountMicros: asMicros(1_000_000), reason: 'a test' };
    for (let round = 0; round < 5; round += 1) {
      const kinds = await kindsAtOnce([payer, ...others], () => {
        const by = { idempotencyKey: randomUUID() };
        return [
          ask(topUp, 1_000_000, by),
          ...others.map((other) => adjustBalance(database, other, adjustment, by)),
        ];
      });
      assert.equal(kinds.filter((kind) => kind === 'key_reused').length, 2, kinds.join());
    }
  });

  it('and an adjustment of another account by one operator with one key at one moment: one is made', async () => {
    const topUp = await payer.topUp(10_000_000);
    const other = await newPayer(database);
    const adjustment = { amountMicros: asMicros(1_000_000), reason: 'a test' };
    const kinds = await kindsAtOnce([payer, other], () => {
      const request = {
        operatorAccountId: other.accountId,
        idempotencyKey: randomUUID(),
        reason: 'a test',
      };
      const [own, others] = [payer, other].map(({ accountId }) => ({ ...request, accountId }));
      return [
        requestRefund(database, topUp, asMicros(1_000_000), own),
        adjustBalance(database, other, adjustment, others),
      ];
    });
    assert.equal(kinds.filter((kind) => kind === 'key_reused').length, 1, kinds.join());
  });

  /**
   * Each of the commands has looked for its key before any other one is written: their accounts are locked until then.
   * Again, if one of them waited for the lock for longer than it may.
   */
  function kindsAtOnce(
    payers: readonly Payer[],
    command: () => Promise<{ readonly kind: string }>[],
  ): Promise<string[]> {
    return until(async () => {
      const holds = await Promise.all(
        payers.map(({ consumerId }) => holdConsumer(ledger.url, wireId('consumer', consumerId))),
      );
      const asked = command();
      await holds[0]?.waited(asked.length, ...asked);
      for (const held of holds) await held.release();
      const results = await Promise.allSettled(asked);
      const isLate = results.some(
        (result) => result.status === 'rejected' && isDatabaseUnavailable(result.reason),
      );
      if (isLate) return undefined;
      return (await Promise.all(asked)).map(({ kind }) => kind);
    });
  }

  function ask(topUp: string, amountMicros?: number, by?: { readonly idempotencyKey: string }) {
    return requestRefund(database, topUp, amountMicros as Micros | undefined, by);
  }

  async function requested(topUp: string, amountMicros?: number) {
    const result = await ask(topUp, amountMicros);
    assert.ok(result.kind === 'requested', result.kind);
    return { ...result, amountMicros: asMicros(result.amountMicros) };
  }

  function dismissalsLogged(): Promise<number> {
    return database.oneFirst(sql.type(countRow)`
      select count(*) as count from farebox.audit_entries
      where action = 'warning.dismissed' and account_id = ${payer.accountId}
    `);
  }

  function notices(topUp: string): Promise<number> {
    return database.oneFirst(sql.type(countRow)`
      select count(*) as count from farebox.outbox
      where topic = 'reversal_reported' and subject_id = ${topUp}
    `);
  }
});
