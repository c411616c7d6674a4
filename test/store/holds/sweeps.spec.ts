/** Sweeps of many expired holds of one consumer: in steps that are short, beside each other. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { HOLD_SECONDS_MAX } from '../../../src/domain/hold.ts';
import { readBacklog } from '../../../src/store/operators/backlog.ts';
import { expireHolds } from '../../../src/store/holds/expire-holds.ts';
import { newConsumers } from '../../support/charge-drafts.ts';
import {
  extending,
  placeAll,
  placing,
  postEntries,
  proveHolds,
} from '../../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';

const FLUSHES = 30;
const HOLDS_PER_FLUSH = 200;
/** Each flush makes a row of those that are due, and so does an extension: that hold is in two rows. */
const ROWS = FLUSHES + 1;
/** As migrations/functions/expire_holds.sql says: 2,000, and the rest of the last flush. */
const HOLDS_PER_STEP_MAX = 2_000 + HOLDS_PER_FLUSH - 1;

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);

describe('sweeps of many expired holds', () => {
  let ledger: TestLedger;
  let client: Client;

  before(async () => {
    ledger = await openTestLedger();
    client = new Client({ connectionString: ledger.url });
    await client.connect();
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  beforeEach(async () => {
    const [consumer] = await newConsumers(client, 1, 1_000_000);
    for (let flush = 0; flush < FLUSHES; flush += 1) {
      const [first = ''] = await placeAll(
        ledger.database,
        Array.from({ length: HOLDS_PER_FLUSH }, () => placing(consumer!, 1)),
      );
      // Beside the first flush, so that one step has both of its rows.
      if (flush === 0) await postEntries(ledger.database, [extending(first, HOLD_SECONDS_MAX)]);
    }
    await client.query(
      `with late as (update farebox.holds set expires_at = now() where state = 0)
       update farebox.hold_expiries set due_at = now() - interval '10 minutes'`,
    );
  });

  /** How many holds each step of one sweep closed. */
  async function sweep(): Promise<number[]> {
    const closed: number[] = [];
    for (let hasMore = true; hasMore;) {
      const step = await expireHolds(ledger.database);
      closed.push(step.holds);
      ({ hasMore } = step);
    }
    return closed;
  }
  const overdue = async () =>
    (await readBacklog(ledger.database)).waiting.find(({ what }) => what === 'expired_holds');

  it('closes a bounded number in each step, and shows the operators what is left', async () => {
    const before = await overdue();
    assert.equal(before?.count, ROWS);
    assert.ok(before.ageSeconds >= 600);
    const closed = await sweep();
    assert.equal(sum(closed), FLUSHES * HOLDS_PER_FLUSH);
    assert.ok(Math.max(...closed) <= HOLDS_PER_STEP_MAX, `${closed.join()} holds`);
    assert.deepEqual(await overdue(), { what: 'expired_holds', count: 0, ageSeconds: 0 });
    await proveHolds(ledger.database);
  });

  it('closes each hold once when two run beside each other', async () => {
    const closed = (await Promise.all([sweep(), sweep()])).flat();
    // The one that found the last rows locked has left them to the other one.
    assert.equal(sum(closed), FLUSHES * HOLDS_PER_FLUSH);
    assert.ok(Math.max(...closed) <= HOLDS_PER_STEP_MAX, `${closed.join()} holds`);
    await proveHolds(ledger.database);
  });
});
