/** The ids of charges: they have the time of Postgres' clock and the order of their flush. */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { ledgerOf, stampedUuid, uuidTimeMs, withTailOf } from '../../src/domain/ids.ts';

describe('a stamped id', () => {
  const NOW_MS = Date.UTC(2026, 10, 22, 20, 30) + 0.7;

  it('is a UUIDv7 of the given millisecond', () => {
    const id = stampedUuid(randomUUIDv7(), NOW_MS, 3);
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7003-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.equal(uuidTimeMs(id), Math.floor(NOW_MS));
  });

  it('keeps its random end, and the order of its flush', () => {
    const ids = Array.from({ length: 4_096 }, () => randomUUIDv7());
    const stamped = ids.map((id, index) => stampedUuid(id, NOW_MS, index));
    assert.deepEqual(stamped.toSorted(), stamped);
    assert.deepEqual(
      stamped.map((id) => id.slice(18)),
      ids.map((id) => id.slice(18)),
    );
    assert.equal(uuidTimeMs(stampedUuid(ids[0]!, NOW_MS, 5_000)), Math.floor(NOW_MS));
  });

  it('keeps the tail of its consumer, which names the ledger', () => {
    const consumerId = randomUUIDv7();
    const id = stampedUuid(withTailOf(consumerId, randomUUIDv7()), NOW_MS, 3);
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7003-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.equal(id.slice(-4), consumerId.slice(-4));
    for (const count of [1, 10, 16, 1_024]) {
      assert.equal(ledgerOf(id, count), ledgerOf(consumerId, count));
      assert.ok(ledgerOf(id, count) >= 0 && ledgerOf(id, count) < count);
    }
  });
});
