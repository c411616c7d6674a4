/** How many charges a flush may take, depending on who charges. */
import assert from 'node:assert/strict';
import { FlushSize } from '../../src/charging/flush-size.ts';

const LIMITS = { batchMax: 200, shareMax: 8 };

describe('a flush', () => {
  let size: FlushSize;

  beforeEach(() => {
    size = new FlushSize(LIMITS);
  });

  const enter = (developer: string, count: number, nowMs: number) => {
    for (let n = 0; n < count; n += 1) size.enter(developer, nowMs);
  };
  const leave = (developer: string, count: number) => {
    for (let n = 0; n < count; n += 1) size.leave(developer);
  };

  it('is full-sized while one developer charges alone', () => {
    enter('a', 256, 0);
    assert.equal(size.max(1, 0), 200);
  });

  it('takes few charges of each waiting developer for a second after one with few has charged', () => {
    enter('a', 256, 0);
    enter('b', 1, 100);
    assert.equal(size.max(1, 100), 8);
    assert.equal(size.max(2, 1_099), 16);
    assert.equal(size.isShared(1_099), true);
    assert.equal(size.max(1, 1_100), 200);
    assert.equal(size.isShared(1_100), false);
  });

  it('is full-sized while many developers wait', () => {
    for (let n = 0; n < 30; n += 1) enter(`${n}`, 5, 0);
    assert.equal(size.max(30, 0), 200);
  });

  it('is full-sized while all have many charges, even when one of them has just been answered', () => {
    enter('a', 50, 0);
    for (let nowMs = 0; nowMs <= 2_000; nowMs += 10) {
      enter('b', 50, nowMs);
      leave('a', 50);
      enter('a', 50, nowMs);
      leave('b', 50);
    }
    assert.equal(size.max(2, 2_000), 200);
  });

  it('takes few again a second after somebody had many', () => {
    enter('a', 256, 0);
    enter('b', 50, 0);
    leave('b', 50);
    enter('b', 1, 500);
    assert.equal(size.max(1, 1_000), 200);
    enter('b', 1, 1_001);
    assert.equal(size.max(1, 1_001), 8);
  });

  it('counts no charge that was decided', () => {
    enter('a', 256, 0);
    leave('a', 256);
    enter('b', 1, 1);
    leave('b', 1);
    enter('a', 256, 2);
    assert.equal(size.max(1, 2), 200);
  });
});
