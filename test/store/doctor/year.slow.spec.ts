/**
 * Doctor finds no fault in correct books: a year of charges, repeated keys, credits, refunds, disputes,
 * automatic top-ups, months of partitions, archives, roll-ups and restored backups. Charges have ids of their
 * time; the rows that PostgreSQL dates are moved to it after each step.
 */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { Type } from 'typebox';
import { replayWindow } from '../../../src/charging/replay-window.ts';
import { DAY_MS } from '../../../src/domain/durations.ts';
import { uuidFloor } from '../../../src/domain/ids.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { adjustBalance } from '../../../src/store/balance/adjustments.ts';
import { archiveMonth } from '../../../src/store/charges/archive-month.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { postCharges, postFittingCharges } from '../../../src/store/charges/post-charges.ts';
import { refundCharge } from '../../../src/store/charges/refund-charge.ts';
import { row, sql, type Database } from '../../../src/store/database.ts';
import { rebuildRollups, rollUp } from '../../../src/store/earnings/rollups.ts';
import { requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import { setAutoTopUp } from '../../../src/store/top-ups/auto-top-ups.ts';
import { changeConsent } from '../../../src/store/top-ups/monthly-ceiling.ts';
import { newDraft } from '../../support/charge-drafts.ts';
import { backUpLedger, openTestLedger, type TestLedger } from '../../support/ledger.ts';
import {
  dispute,
  newPayer,
  payerOf,
  processorId,
  refund,
  type Consumer,
  type Payer,
} from '../../support/payer.ts';
import { Random, SEED } from '../../support/random.ts';

const DAYS = 365;
const STEPS_A_DAY = 1;
const RECEIPT_KEY = 1;
const POOL = 2;
/** The days of backups, and of the restores that follow: the second one loses the archiving of a month. */
const BACKUPS = [100, 255];
const RESTORES = [115, 275];
/** Few, so that each recurs, within its retention and after it. */
const KEYS = Array.from({ length: 6 }, (_, n) => `${n + 1}`.repeat(22));

const countRow = row(Type.Object({ months: Type.Integer() }));

interface PaidTopUp {
  readonly id: string;
  readonly consumer: Consumer;
  dispute?: string;
}

/** What was made so far, and is in the database. */
interface Made {
  readonly topUps: readonly PaidTopUp[];
  readonly charges: readonly string[];
  readonly keys: ReadonlySet<string>;
}

class Year {
  #database: Database;
  readonly #random: Random;
  readonly #consumers: readonly Consumer[];
  #topUps: PaidTopUp[] = [];
  #charges: string[] = [];
  #keys = new Set<string>();
  /** How often a key made another charge. */
  forgottenKeys = 0;

  constructor(database: Database, random: Random, consumers: readonly Consumer[]) {
    this.#database = database;
    this.#random = random;
    this.#consumers = consumers;
  }

  get made(): Made {
    return structuredClone({ topUps: this.#topUps, charges: this.#charges, keys: this.#keys });
  }

  /** With a database in which only this was made. */
  continueWith(database: Database, { topUps, charges, keys }: Made): void {
    this.#database = database;
    this.#topUps = [...topUps];
    this.#charges = [...charges];
    this.#keys = new Set(keys);
  }

  async step(nowMs: number): Promise<void> {
    await this.#act(nowMs);
    await redate(this.#database, nowMs);
  }

  async #act(nowMs: number): Promise<void> {
    const random = this.#random;
    const database = this.#database;
    const consumer = random.pick(this.#consumers);
    const payer = payerOf(database, consumer);
    const step = random.weighted({
      charge: 12,
      topUp: 4,
      adjust: 2,
      refundCharge: 3,
      refundTopUp: 1,
      dispute: 1,
      decide: 2,
      automatic: 1,
      rollUp: 2,
    });
    switch (step) {
      case 'charge':
        return this.#charge(payer, nowMs);
      case 'topUp':
        this.#topUps.push({
          id: await payer.topUp(random.between(1, 40) * 500_000),
          consumer,
        });
        return;
      case 'adjust': {
        const amountMicros = asMicros(random.pick([-2, -1, 1, 3]) * 700_001);
        await adjustBalance(database, payer, { amountMicros, reason: 'a year' });
        return;
      }
      case 'refundCharge': {
        const chargeId = this.#charges.length > 0 && random.pick(this.#charges);
        if (!chargeId) return;
        const askedMicros = random.chance(0.5) ? null : asMicros(random.between(1, 300_000));
        const request = { developerNumber: 1, chargeId, askedMicros, idempotencyKey: undefined };
        await refundCharge(database, request);
        return;
      }
      case 'refundTopUp': {
        const topUp = this.#topUps.find(() => random.chance(0.3));
        if (topUp) await requestRefund(database, topUp.id, undefined);
        return;
      }
      case 'dispute': {
        const topUp = this.#topUps.find((each) => !each.dispute && random.chance(0.3));
        if (!topUp) return;
        topUp.dispute = processorId('dp');
        return payerOf(database, topUp.consumer).report(topUp.id, dispute(topUp.dispute, 500_000));
      }
      case 'decide': {
        const topUp = this.#topUps.find((each) => each.dispute && random.chance(0.5));
        if (!topUp?.dispute) return;
        const reported = random.chance(0.2)
          ? refund(processorId('re'), 10_000)
          : dispute(topUp.dispute, 500_000, random.pick(['won', 'lost']));
        return payerOf(database, topUp.consumer).report(topUp.id, reported);
      }
      case 'automatic': {
        const settings = random.chance(0.3)
          ? null
          : {
              thresholdMicros: asMicros(300_000),
              amountMicros: asMicros(1_000_000),
              ceilingMicros: asMicros(9_000_000),
            };
        const ceiling = asMicros(9_000_000);
        await changeConsent(database, payer.consumerId, {
          ceilingMicros: ceiling,
          givenBy: 'operator',
        });
        await setAutoTopUp(database, payer, settings);
        return;
      }
      case 'rollUp':
        await rollUp(database);
    }
  }

  /** Like the batcher: by both statements, among the charges of the days in which a key is looked up. */
  async #charge(payer: Payer, nowMs: number): Promise<void> {
    const random = this.#random;
    const key = random.chance(0.5) ? random.pick(KEYS) : null;
    const draft = {
      ...newDraft(payer, random.between(1, 900_000)),
      id: uuidAt(nowMs),
      // A key belongs to its consumer.
      idempotencyHash: key && `${payer.consumerId.replaceAll('-', '').slice(-12)}${key.slice(12)}`,
      fingerprint: key && '0000000001',
    };
    const window = replayWindow(nowMs);
    const [fitting] = await postFittingCharges(this.#database, [draft], RECEIPT_KEY, window);
    const [outcome] = fitting
      ? [fitting]
      : await postCharges(this.#database, [draft], RECEIPT_KEY, window);
    if (outcome?.kind !== 'posted') return;
    this.#charges.push(outcome.id);
    const hash = draft.idempotencyHash;
    if (hash === null) return;
    if (this.#keys.has(hash)) this.forgottenKeys += 1;
    this.#keys.add(hash);
  }
}

describe('doctor, after a year', () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openTestLedger(POOL);
  });
  after(() => ledger?.drop());

  it(`finds no fault in correct books (SEED=${SEED})`, async function () {
    const random = new Random(SEED);
    const consumers = await Promise.all([1, 2, 3].map(() => newConsumer(ledger.database)));
    const year = new Year(ledger.database, random, consumers);
    let backup: { readonly ledger: TestLedger; readonly made: Made } | undefined;
    const beginsMs = Date.now() - DAYS * DAY_MS;
    let archived = 0;
    for (let step = 0; step < DAYS * STEPS_A_DAY; step += 1) {
      const nowMs = beginsMs + (step / STEPS_A_DAY) * DAY_MS;
      if (BACKUPS.includes(step)) {
        const [present, copy] = await backUpLedger(ledger, POOL);
        assert.ok(present && copy);
        ledger = present;
        backup = { ledger: copy, made: year.made };
        year.continueWith(ledger.database, backup.made);
      } else if (backup && RESTORES.includes(step)) {
        await ledger.drop();
        ledger = backup.ledger;
        year.continueWith(ledger.database, backup.made);
        assert.deepEqual(await examineLedger(ledger.database), []);
      }
      const { database, url } = ledger;
      if (step % (30 * STEPS_A_DAY) === 0) {
        await ensureChargePartitions(url, nowMs);
        if (await archiveOldest(database, nowMs)) archived += 1;
      }
      await year.step(nowMs);
      if (step % (60 * STEPS_A_DAY) === 0) assert.deepEqual(await examineLedger(database), []);
    }
    const { database } = ledger;
    assert.deepEqual(await examineLedger(database), []);
    await rebuildRollups(database);
    assert.deepEqual(await examineLedger(database), []);
    const months = await database.oneFirst(sql.type(countRow)`
      select count(distinct tableoid) as months from farebox.charges
    `);
    assert.ok(year.forgottenKeys > 0, 'no key was used again after it was forgotten');
    assert.ok(archived >= 7, `${archived} months were archived`);
    assert.ok(months + archived > 10, `charges in ${months} partitions`);
  });
});

async function newConsumer(database: Database): Promise<Consumer> {
  const { ledger, consumerId, accountId } = await newPayer(database);
  return { ledger, consumerId, accountId };
}

/** Archives the oldest month, if that is over for long enough. */
async function archiveOldest(database: Database, nowMs: number): Promise<boolean> {
  while ((await rollUp(database)).hasMore);
  const asked = await archiveMonth(database, '2000-01', nowMs);
  assert.ok(asked.kind === 'not_next' && asked.next !== null);
  return (await archiveMonth(database, asked.next, nowMs)).kind === 'archived';
}

/** A UUIDv7 of this instant. */
function uuidAt(timeMs: number): string {
  return uuidFloor(Math.floor(timeMs)).slice(0, 14) + randomUUIDv7().slice(14);
}

/** Rows that PostgreSQL has just dated get this instant. */
async function redate(database: Database, nowMs: number): Promise<void> {
  const at = sql.fragment`${new Date(nowMs).toISOString()}::timestamptz`;
  await database.query(sql.typeAlias('nothing')`
    with moved as (
      update farebox.movements set created_at = ${at}, id = uuidv7(${at} - now())
      where created_at > now() - interval '1 minute'
      returning old.id as before, new.id as after
    )
    update farebox.lots set movement_id = after from moved where movement_id = before
  `);
  await database.query(sql.typeAlias('nothing')`
    update farebox.top_ups set created_at = ${at}, completed_at = ${at}
    where created_at > now() - interval '1 minute'
  `);
  await database.query(sql.typeAlias('nothing')`
    update farebox.charge_refunds set id = uuidv7(${at} - now())
    where uuid_extract_timestamp(id) > now() - interval '1 minute'
  `);
  await database.query(sql.typeAlias('nothing')`
    update farebox.earnings_tail set minute = date_trunc('minute', ${at})
    where minute > now() - interval '2 minutes'
  `);
}
