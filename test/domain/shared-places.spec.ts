/** The places for calls of agents: an account holds as many as are free, and each given back can be taken again. */
import assert from 'node:assert/strict';
import { SharedPlaces } from '../../src/domain/shared-places.ts';

const ANSWERED = { hung: false };
const HUNG = { hung: true };

describe('shared places', () => {
  it('are taken by one account up to half', () => {
    const places = new SharedPlaces(200, 50);
    assert.equal(takenBy(places, 'a'), 100);
  });

  it('have room for each further account', () => {
    const places = new SharedPlaces(200, 50);
    const taken = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((account) => takenBy(places, account));
    assert.deepEqual(taken, [100, 50, 25, 13, 6, 3, 2]);
    assert.equal(places.take('h'), true);
  });

  it('can be taken again once they are given back', () => {
    const places = new SharedPlaces(4, 1);
    assert.equal(takenBy(places, 'a'), 2);
    assert.equal(takenBy(places, 'b'), 1);
    places.giveBack('a', ANSWERED);
    places.giveBack('a', ANSWERED);
    assert.equal(takenBy(places, 'b'), 1);
    places.giveBack('b', ANSWERED);
    places.giveBack('b', ANSWERED);
    assert.equal(takenBy(places, 'a'), 2);
  });

  it('are all taken by as many accounts, and then none is free', () => {
    const places = new SharedPlaces(3, 1);
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].map((account) => places.take(account)),
      [true, true, true, false],
    );
  });

  describe('of accounts whose last call hung', () => {
    const places = new SharedPlaces(200, 50);
    const hanging = Array.from({ length: 400 }, (_, n) => `hanging-${n}`);

    before(() => {
      for (const account of hanging) {
        assert.ok(places.take(account));
        places.giveBack(account, HUNG);
      }
    });

    it('are all but the reserved ones, for any number of such accounts', () => {
      assert.equal(hanging.filter((account) => places.take(account)).length, 150);
      assert.equal(takenBy(places, 'another'), 25);
    });

    it('are as many as those of others after a call that did not hang', () => {
      places.giveBack('hanging-0', ANSWERED);
      assert.equal(places.take('hanging-0'), true);
      assert.equal(places.take('hanging-399'), false);
    });
  });
});

function takenBy(places: SharedPlaces, account: string): number {
  let taken = 0;
  while (places.take(account)) taken += 1;
  return taken;
}
