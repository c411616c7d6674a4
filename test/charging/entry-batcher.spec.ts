/**
 * Entries of holds in the batcher, against Postgres: they have the fair shares and the lanes for exceptions
 * that charges have. batcher.spec.ts and batcher-lanes.spec.ts have the rest, which is the same for both.
 */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { Client } from 'pg';
import {
  createChargeBatcher,
  createEntryBatcher,
  type EntryBatcher,
} from '../../src/charging/ledger-batchers.ts';
import { DatabaseClock } from '../../src/charging/database-clock.ts';
import { BATCH_MAX, EXCEPTION_LANES } from '../../src/charging/limits.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import type { HoldEntry } from '../../src/store/holds/hold-entry.ts';
import { newConsumers, newDraft, RECEIPT_KEY, type Consumer } from '../support/charge-drafts.ts';
import { capturing, micros, placing, proveHolds, releasing } from '../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { dispute, newPayer, processorId } from '../support/payer.ts';
import { gone, stays } from '../support/scripted-batcher.ts';
import { until } from '../support/stack.ts';

const LOCK_TIMEOUT_MS = 50;

const placed = (consumer: Consumer) => placing(consumer, 10);

describe('the batcher of entries', () => {
  let ledger: TestLedger;
  let pool: Database;
  let clock: DatabaseClock;
  let client: Client;
  let batcher: EntryBatcher;
  let consumers: Consumer[];

  before(async () => {
    ledger = await openTestLedger();
    clock = new DatabaseClock(ledger.database, () => {});
    await clock.start();
    pool = await createDatabase(ledger.url, {
      maxPoolSize: 1 + EXCEPTION_LANES,
      lockTimeoutMs: LOCK_TIMEOUT_MS,
      onError: () => {},
    });
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    batcher = createEntryBatcher({
      pool,
      laneCount: 1,
      receiptKey: RECEIPT_KEY,
      clock,
      onFailure: () => {},
    });
    consumers = await newConsumers(client, 3, 1_000_000);
  });
  after(async () => {
    await clock?.stop();
    await client?.end();
    await pool?.end();
    await ledger?.drop();
  });

  const post = (entry: HoldEntry, requester = stays) => batcher.post(entry, requester);

  async function place(entry: HoldEntry): Promise<string> {
    const outcome = await post(entry);
    assert.ok(outcome.kind === 'done', outcome.kind);
    return outcome.hold.id;
  }

  it('serves developers in turn, even when one of them has a long queue', async () => {
    let flooded = 0;
    const flood = Array.from({ length: 3 * BATCH_MAX }, () =>
      place(placed(consumers[0]!)).then(() => (flooded += 1)),
    );
    const other = { ...placed(consumers[1]!), developerId: randomUUIDv7(), developerNumber: 2 };
    await place(other);
    assert.ok(flooded <= BATCH_MAX, `${flooded} holds of the flood were placed first`);
    await Promise.all(flood);
  });

  it('lets 5,000 entries of a developer wait in a lane, and 20,000 in total; the batcher of charges does too', async () => {
    const charge = { ...newDraft(consumers[0]!, 1), kind: 'charge' } as const;
    const developerIds = Array.from({ length: 5 }, () => randomUUIDv7());
    const deps = { pool, laneCount: 1, receiptKey: RECEIPT_KEY, clock, onFailure: () => {} };
    for (const opened of [createEntryBatcher(deps), createChargeBatcher(deps)]) {
      const answers = developerIds.flatMap((developerId, index) => {
        // All arrive in one turn of the event loop, and are dropped unsent in the next one.
        const own = Array.from({ length: 5_001 }, () =>
          opened.post({ ...charge, developerId }, gone),
        );
        assert.equal(opened.waiting, Math.min(20_000, (index + 1) * 5_000));
        return own;
      });
      await Promise.allSettled(answers);
      assert.equal(opened.waiting, 0);
    }
  });

  it('decides holds and charges in the order of their arrival', async () => {
    const [consumer] = (await newConsumers(client, 1, 100)) as [Consumer];
    const charge = (micros: number) =>
      batcher.post({ ...newDraft(consumer, micros), kind: 'charge' }, stays);
    const id = await place(placing(consumer, 60));
    const outcomes = await Promise.all([
      charge(50),
      post(releasing(id)),
      charge(50),
      post(placing(consumer, 60)),
      charge(50),
    ]);
    assert.deepEqual(
      outcomes.map(({ kind }) => kind),
      ['insufficient', 'done', 'posted', 'insufficient', 'posted'],
    );
  });

  it('decides others at once while a consumer or its hold is locked, and these as soon as possible', async () => {
    const [locked, neighbor] = consumers as [Consumer, Consumer, Consumer];
    const [held, free] = [await place(placed(locked)), await place(placed(neighbor))];
    for (const [table, id] of [
      ['consumers', locked.consumerId],
      ['holds', held],
    ]) {
      await client.query('begin');
      await client.query(`select from farebox.${table} where id = $1 for update`, [id]);
      const waiting = post(capturing(held, { isFinal: false, amountMicros: micros(1) }));
      const done = post(capturing(free, { isFinal: false, amountMicros: micros(1) }));
      await Promise.all([
        done.then(({ kind }) => assert.equal(kind, 'done')),
        place(placed(neighbor)),
      ]);
      await client.query('rollback');
      assert.equal((await waiting).kind, 'done');
    }
  });

  it('repays a debt from what a release lets go, while others are decided', async () => {
    const payer = await newPayer(ledger.database);
    const topUp = await payer.topUp(10_000_000);
    const holds = await Promise.all([1, 2].map(() => place(placing(payer, 2_000_000))));
    await payer.report(topUp, dispute(processorId('dp'), 9_000_000, 'lost'));
    assert.deepEqual(await payer.money(), { balance: 0, held: 4_000_000, debt: 3_000_000 });
    const releases = holds.map((id) => post(releasing(id)));
    await place(placed(consumers[2]!));
    assert.deepEqual(
      (await Promise.all(releases)).map(({ kind }) => kind),
      ['done', 'done'],
    );
    assert.deepEqual(await payer.money(), { balance: 1_000_000, held: 0, debt: 0 });
  });

  it('decides what follows a release in order when the release repays a debt', async () => {
    const payer = await newPayer(ledger.database);
    const topUp = await payer.topUp(10_000_000);
    const [first, second] = await Promise.all(
      [2_000_000, 2_000_000].map((micros) => place(placing(payer, micros))),
    );
    assert.ok(first && second);
    await payer.report(topUp, dispute(processorId('dp'), 9_000_000, 'lost'));
    assert.deepEqual(await payer.money(), { balance: 0, held: 4_000_000, debt: 3_000_000 });
    const outcomes = await Promise.all([
      post(releasing(first)),
      post(capturing(first, { isFinal: false, amountMicros: micros(1) })),
      post(releasing(second)),
      batcher.post({ ...newDraft(payer, 1_000_000), kind: 'charge' }, stays),
      post(placing(payer, 1)),
    ]);
    assert.deepEqual(
      outcomes.map(({ kind }) => kind),
      ['done', 'hold_closed', 'done', 'posted', 'insufficient'],
    );
  });

  it('never sends an entry whose client has disconnected', async () => {
    await assert.rejects(post(placed(consumers[0]!), gone), { kind: 'not_made' });
    await until(() => batcher.waiting === 0);
  });

  it('leaves the books correct', () => proveHolds(ledger.database));
});
