/** The look-up that comes before a refusal finds no hold that the ledger, asked a moment later, would place again. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { DatabaseClock } from '../../src/charging/database-clock.ts';
import { EarlierCharges } from '../../src/charging/earlier-charges.ts';
import { idsAt } from '../../src/domain/ids.ts';
import { replayWindow } from '../../src/charging/replay-window.ts';
import {
  BATCHER_LIMITS,
  CLOCK_JUMP_MS_MAX,
  IDEMPOTENCY_RETENTION_MS,
} from '../../src/charging/limits.ts';
import type { HoldEntry, HoldOutcome } from '../../src/store/holds/hold-entry.ts';
import * as store from '../../src/store/holds/post-hold-entries.ts';
import { newConsumers, newKey, RECEIPT_KEY } from '../support/charge-drafts.ts';
import { placing } from '../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';

/** Between the look-up and the statement, an entry may wait in the queue, and the clock may jump. */
const LATER_MS = BATCHER_LIMITS.deadlineMs + CLOCK_JUMP_MS_MAX;

describe('the look-up of an earlier hold', () => {
  let ledger: TestLedger;
  let client: Client;
  let clock: DatabaseClock;

  before(async () => {
    ledger = await openTestLedger(2);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    clock = new DatabaseClock(ledger.database, () => {});
    await clock.start();
  });
  after(async () => {
    await clock?.stop();
    await client?.end();
    await ledger?.drop();
  });

  it('ignores holds whose idempotency key ends before the ledger is asked', async () => {
    const earlier = new EarlierCharges(ledger.database, clock);
    const [consumer] = await newConsumers(client, 1, 1_000_000);
    assert.ok(consumer);
    const nowMs = clock.checkedNowMs();
    const endsMs = nowMs - IDEMPOTENCY_RETENTION_MS;
    const post = (entry: HoldEntry, atMs: number): Promise<(HoldOutcome | undefined)[]> =>
      store.postFittingEntries(ledger.database, [entry], RECEIPT_KEY, replayWindow(atMs));
    const found: boolean[] = [];
    for (const leftMs of [LATER_MS / 2, LATER_MS, 600_000]) {
      const key = newKey();
      const id = idsAt(endsMs + leftMs)(0, consumer.consumerId, randomUUID());
      const entry = { ...placing(consumer, 1_000), ...key, id };
      await post(entry, nowMs);
      const isFound = await earlier.hasHold(key);
      found.push(isFound);
      if (!isFound) continue;
      // This is what replayEntry sends.
      const again = { ...placing(consumer, 1), ...key };
      const [outcome] = await post(again, nowMs + LATER_MS);
      assert.equal(outcome?.kind, 'replayed');
    }
    assert.deepEqual(found, [false, false, true]);
  });
});
