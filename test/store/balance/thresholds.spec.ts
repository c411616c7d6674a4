/** Thresholds of balances: exactly one event for each crossing, from the commit of the charge or hold that crosses. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { wireId } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { EVENT_DATA } from '../../../src/schemas/events.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { adjustBalance } from '../../../src/store/balance/adjustments.ts';
import { findLowBalance, setLowBalance } from '../../../src/store/balance/thresholds.ts';
import { refundCharge } from '../../../src/store/charges/refund-charge.ts';
import type { Database } from '../../../src/store/database.ts';
import { makeWebhookEndpoint } from '../../../src/store/events/webhook-endpoints.ts';
import { newDraft, post } from '../../support/charge-drafts.ts';
import { assertShape } from '../../support/contract.ts';
import { endAll } from '../../support/end-all.ts';
import { capturing, placing, postEntries, releasing } from '../../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { dispute, newPayer, processorId, type Payer } from '../../support/payer.ts';
import { Random, SEED } from '../../support/random.ts';

const CENT = 10_000;
const LOW = 500 * CENT;

interface Told {
  readonly type: 'balance.low' | 'balance.exhausted';
  readonly data: Record<string, unknown>;
}

describe('thresholds of a balance', () => {
  let ledger: TestLedger;
  let database: Database;
  let client: Client;
  let payer: Payer;

  before(async () => {
    ledger = await openTestLedger(8);
    ({ database } = ledger);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
  });
  /** With $10.00, an endpoint, and $5.00 as the owner's threshold. */
  beforeEach(async () => {
    payer = await newPayer(database);
    await payer.topUp(1_000 * CENT);
    await listen(payer);
    await setLowBalance(database, payer, asMicros(LOW));
  });
  after(() =>
    endAll(
      async () => assert.deepEqual(await examineLedger(database), []),
      () => client?.end(),
      () => ledger?.drop(),
    ),
  );

  it('make an event when a charge leaves less than one, in the form of the API', async () => {
    await payer.charge(500 * CENT);
    assert.deepEqual(await told(), []);
    await payer.charge(5 * CENT);
    await payer.charge(5 * CENT);
    const consumerId = wireId('consumer', payer.consumerId);
    const low = { consumerId, balance: 4.95, threshold: 5 };
    assert.deepEqual(await told(), [{ type: 'balance.low', data: low }]);
    await payer.charge(490 * CENT);
    assert.deepEqual(await told(), [
      { type: 'balance.exhausted', data: { consumerId, balance: 0 } },
    ]);
  });

  it('make both events when one charge takes everything, low first', async () => {
    await payer.charge(1_000 * CENT);
    assert.deepEqual(await types(), ['balance.low', 'balance.exhausted']);
  });

  it('are crossed by a refused charge or hold only where the balance is exhausted by it', async () => {
    assert.equal(await payer.charge(1_001 * CENT), false);
    assert.equal(await payer.charge(1_001 * CENT), false);
    await postEntries(database, [placing(payer, 1_001 * CENT)]);
    assert.deepEqual(
      (await told()).map(({ type, data }) => [type, data['balance']]),
      [['balance.exhausted', 10]],
    );
    await payer.topUp(100 * CENT);
    await postEntries(database, [placing(payer, 1_101 * CENT)]);
    assert.deepEqual(await types(), ['balance.exhausted']);
  });

  it('are armed again by a credit that brings the balance back, and by no smaller one', async () => {
    await payer.charge(600 * CENT);
    await payer.topUp(50 * CENT);
    await payer.charge(1);
    assert.deepEqual(await types(), ['balance.low']);
    await payer.topUp(100 * CENT);
    await payer.charge(49 * CENT);
    assert.deepEqual(await types(), []);
    await payer.charge(1 * CENT);
    assert.deepEqual(await types(), ['balance.low']);
    const reason = 'a test';
    await adjustBalance(database, payer, { amountMicros: asMicros(100 * CENT), reason });
    await payer.charge(100 * CENT);
    assert.deepEqual(await types(), ['balance.low']);
  });

  it('make one event while charges and their refunds, or holds and releases, go up and down', async () => {
    for (let round = 0; round < 3; round += 1) {
      const draft = newDraft(payer, 600 * CENT);
      await post(database, [draft]);
      await giveBack(draft.id);
      const [placed] = await postEntries(database, [placing(payer, 600 * CENT)]);
      assert.ok(placed?.kind === 'done');
      await postEntries(database, [releasing(placed.hold.id)]);
    }
    assert.deepEqual(await types(), ['balance.low']);
  });

  it('are armed again by a refund an hour after they were crossed', async () => {
    const draft = newDraft(payer, 1_000 * CENT);
    await post(database, [draft]);
    await anHourPasses();
    await giveBack(draft.id, 100 * CENT);
    await payer.charge(100 * CENT);
    assert.deepEqual(await types(), ['balance.low', 'balance.exhausted', 'balance.exhausted']);
    await giveBack(draft.id);
    await payer.charge(900 * CENT);
    assert.deepEqual(await types(), ['balance.low']);
  });

  it('are not crossed by captures of what is held, nor by money that is taken back', async () => {
    await setLowBalance(database, payer, null);
    const [placed] = await postEntries(database, [placing(payer, 600 * CENT)]);
    assert.ok(placed?.kind === 'done');
    await setLowBalance(database, payer, asMicros(400 * CENT));
    await postEntries(database, [capturing(placed.hold.id)]);
    const disputed = await payer.topUp(100 * CENT);
    await payer.report(disputed, dispute(processorId('dp'), 100 * CENT, 'lost'));
    await adjustBalance(database, payer, { amountMicros: asMicros(-CENT), reason: 'a test' });
    assert.deepEqual(await types(), []);
    await payer.charge(CENT);
    assert.deepEqual(await types(), ['balance.low']);
  });

  it('make no event for what is true when they are set, and none once they are removed', async () => {
    await payer.charge(300 * CENT);
    await setLowBalance(database, payer, asMicros(800 * CENT));
    assert.equal(await findLowBalance(database, payer), 800 * CENT);
    await payer.charge(CENT);
    assert.deepEqual(await types(), []);
    await setLowBalance(database, payer, asMicros(600 * CENT));
    await payer.charge(99 * CENT);
    assert.deepEqual(await types(), []);
    await payer.charge(1);
    assert.deepEqual(await types(), ['balance.low']);
    await payer.topUp(1_000 * CENT);
    await setLowBalance(database, payer, null);
    assert.equal(await findLowBalance(database, payer), null);
    await payer.charge(1_500 * CENT);
    assert.deepEqual(await types(), []);
  });

  it('make no events for an account without endpoints and without a threshold of its own', async () => {
    payer = await newPayer(database);
    await payer.topUp(100 * CENT);
    await payer.charge(100 * CENT);
    await payer.charge(1);
    assert.deepEqual(await types(), []);
  });

  it('are noted with their charge or not at all, and by no replay', async () => {
    const failing = [newDraft(payer, 600 * CENT), newDraft(payer, 0)];
    await assert.rejects(post(database, failing));
    assert.deepEqual(await types(), []);
    const keyed = {
      ...newDraft(payer, 100 * CENT),
      idempotencyHash: 'ab'.repeat(11),
      fingerprint: '0000000001',
    };
    await post(database, [keyed]);
    await setLowBalance(database, payer, asMicros(900 * CENT));
    // With the replay, the fitting statement takes the debit back after it was below the threshold.
    await post(database, [keyed]);
    assert.deepEqual(await types(), []);
  });

  it(`are told as a model tells them, after any operations (SEED=${SEED})`, async () => {
    const random = new Random(SEED);
    const model = { balance: 1_000, isLowArmed: true, isExhaustedArmed: true, hoursOld: [0, 0] };
    const open: { id: string; left: number }[] = [];
    const charged: { id: string; left: number }[] = [];
    let expected: string[] = [];
    const takes = (cents: number): boolean => {
      const isRefused = cents > model.balance;
      if (!isRefused) model.balance -= cents;
      if (model.isLowArmed && model.balance < LOW / CENT) {
        model.isLowArmed = false;
        model.hoursOld[0] = 0;
        expected.push('balance.low');
      }
      if (model.isExhaustedArmed && (isRefused || model.balance === 0)) {
        model.isExhaustedArmed = false;
        model.hoursOld[1] = 0;
        expected.push('balance.exhausted');
      }
      return !isRefused;
    };
    const credits = (cents: number, isRefund: boolean) => {
      model.balance += cents;
      const mayArm = (which: number) => !isRefund || (model.hoursOld[which] ?? 0) >= 2;
      if (model.balance >= LOW / CENT && mayArm(0)) model.isLowArmed = true;
      if (model.balance >= 1 && mayArm(1)) model.isExhaustedArmed = true;
    };
    for (let step = 0; step < 150; step += 1) {
      const cents = random.between(1, random.pick([20, 400, 1_200]));
      const operation = random.weighted({
        charge: 5,
        place: 3,
        settle: 3,
        refund: 3,
        topUp: 1,
        adjust: 1,
        hour: 1,
      });
      if (operation === 'charge') {
        const draft = newDraft(payer, cents * CENT);
        await post(database, [draft]);
        if (takes(cents)) charged.push({ id: draft.id, left: cents });
      } else if (operation === 'place') {
        const [placed] = await postEntries(database, [placing(payer, cents * CENT)]);
        if (takes(cents)) {
          assert.ok(placed?.kind === 'done');
          open.push({ id: placed.hold.id, left: cents });
        }
      } else if (operation === 'settle') {
        const hold = open.pop();
        if (!hold) continue;
        const part = random.between(1, hold.left);
        const isReleased = random.chance(0.5);
        const amountMicros = asMicros(part * CENT);
        await postEntries(database, [
          isReleased ? releasing(hold.id) : capturing(hold.id, { amountMicros }),
        ]);
        model.balance += isReleased ? hold.left : hold.left - part;
      } else if (operation === 'refund') {
        const charge = charged.pop();
        if (!charge) continue;
        await giveBack(charge.id);
        credits(charge.left, true);
      } else if (operation === 'topUp') {
        await payer.topUp((cents + 50) * CENT);
        credits(cents + 50, false);
      } else if (operation === 'adjust') {
        const taken = Math.min(cents, model.balance);
        if (taken === 0) continue;
        const amountMicros = asMicros(-taken * CENT);
        await adjustBalance(database, payer, { amountMicros, reason: 'a test' });
        model.balance -= taken;
      } else {
        await anHourPasses();
        model.hoursOld = model.hoursOld.map((hours) => hours + 2);
      }
      assert.equal((await payer.money()).balance, model.balance * CENT);
      assert.deepEqual(await types(), expected, `step ${step}: ${operation} of ${cents} cents`);
      expected = [];
    }
  });

  it(`are told exactly once by concurrent charges and holds of eight connections (SEED=${SEED})`, async () => {
    const random = new Random(SEED);
    const payers = [payer, await newPayer(database), await newPayer(database)];
    for (const each of payers.slice(1)) {
      await each.topUp(1_000 * CENT);
      await listen(each);
      await setLowBalance(database, each, asMicros(LOW));
    }
    for (let round = 0; round < 5; round += 1) {
      const refused = new Set<string>();
      await Promise.all(
        Array.from({ length: 40 }, async () => {
          const drafts = Array.from({ length: random.between(1, 4) }, () =>
            newDraft(random.pick(payers), random.between(1, 40) * CENT),
          );
          if (random.chance(0.3)) {
            const entries = drafts.map(
              (draft) => ({ ...draft, kind: 'place', seconds: 600 }) as const,
            );
            const outcomes = await postEntries(database, entries);
            for (const [n, { kind }] of outcomes.entries())
              if (kind === 'insufficient') refused.add(drafts[n]?.consumerId ?? '');
          } else {
            const outcomes = await post(database, drafts);
            for (const [n, { kind }] of outcomes.entries())
              if (kind === 'insufficient') refused.add(drafts[n]?.consumerId ?? '');
          }
        }),
      );
      for (const each of payers) {
        const { balance } = await each.money();
        const found = await types(each);
        assert.deepEqual(found.toSorted(), [
          ...(balance === 0 || refused.has(each.consumerId) ? ['balance.exhausted'] : []),
          ...(balance < LOW ? ['balance.low'] : []),
        ]);
        await each.topUp(1_000 * CENT - balance + CENT);
      }
    }
  });

  const listen = ({ accountId }: Payer) =>
    makeWebhookEndpoint(database, accountId, 1, {
      url: `https://example.com/${randomUUID()}`,
      types: null,
      description: '',
    });

  /** What the account was told of its balance, in order, and not again. */
  async function told({ accountId } = payer): Promise<Told[]> {
    const { rows } = await client.query<Told>(
      `with taken as (
         delete from farebox.events where account_id = $1 and type like 'balance.%' returning id, type, data
       ) select type, data from taken order by id`,
      [accountId],
    );
    for (const { type, data } of rows) assertShape(data, EVENT_DATA[type]);
    return rows;
  }

  async function types(of = payer): Promise<string[]> {
    return (await told(of)).map(({ type }) => type);
  }

  async function giveBack(chargeId: string, micros?: number): Promise<void> {
    const askedMicros = micros === undefined ? null : asMicros(micros);
    const request = { developerNumber: 1, chargeId, askedMicros, idempotencyKey: undefined };
    assert.equal((await refundCharge(database, request)).kind, 'refunded');
  }

  const anHourPasses = () =>
    client.query(`update farebox.thresholds set crossed_at = crossed_at - interval '2 hours'`);
});
