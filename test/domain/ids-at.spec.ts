/** The ids of charges: they have the time of Postgres' clock and the order of their flush. */
import assert from 'node:assert/strict';
import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { idsAt, ledgerOf, uuidTimeMs } from '../../src/domain/ids.ts';

describe('the ids of a millisecond', () => {
  const NOW_MS = Date.UTC(2026, 10, 22, 20, 30) + 0.7;
  const idOf = (index: number, owner: string) => idsAt(NOW_MS)(index, owner, randomUUID());

  it('are UUIDv7s', () => {
    const id = idOf(3, randomUUIDv7());
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7003-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.equal(uuidTimeMs(id), Math.floor(NOW_MS));
    assert.equal(uuidTimeMs(idsAt(1)(0, randomUUIDv7(), randomUUID())), 1);
  });

  it('have the order of their flush', () => {
    const ids = Array.from({ length: 4_096 }, (_, index) => idOf(index, randomUUIDv7()));
    assert.deepEqual(ids.toSorted(), ids);
    const beyond = idOf(5_000, randomUUIDv7());
    assert.equal(uuidTimeMs(beyond), Math.floor(NOW_MS));
    assert.equal(beyond.slice(0, 18), ids[4_095]?.slice(0, 18));
  });

  it('differ for one consumer and one place in the flush', () => {
    const owner = randomUUIDv7();
    const ids = Array.from({ length: 1_000 }, () => idOf(4_095, owner));
    assert.equal(new Set(ids).size, ids.length);
  });

  it('have the tail of their consumer, which names the ledger', () => {
    const consumerId = randomUUIDv7();
    const id = idOf(3, consumerId);
    assert.equal(id.slice(-4), consumerId.slice(-4));
    for (const count of [1, 10, 16, 1_024]) {
      assert.equal(ledgerOf(id, count), ledgerOf(consumerId, count));
      assert.ok(ledgerOf(id, count) >= 0 && ledgerOf(id, count) < count);
    }
  });
});
