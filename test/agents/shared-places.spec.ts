/** The places for calls of agents: an account holds as many as are free, and each given back can be taken again. */
import assert from 'node:assert/strict';
import { SharedPlaces } from '../../src/agents/shared-places.ts';

describe('shared places', () => {
  it('are taken by one account up to half', () => {
    const places = new SharedPlaces(200);
    assert.equal(takenBy(places, 'a'), 100);
  });

  it('have room for each further account', () => {
    const places = new SharedPlaces(200);
    const taken = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((account) => takenBy(places, account));
    assert.deepEqual(taken, [100, 50, 25, 13, 6, 3, 2]);
    assert.equal(places.take('h'), true);
  });

  it('can be taken again once they are given back', () => {
    const places = new SharedPlaces(4);
    assert.equal(takenBy(places, 'a'), 2);
    assert.equal(takenBy(places, 'b'), 1);
    places.giveBack('a');
    places.giveBack('a');
    assert.equal(takenBy(places, 'b'), 1);
    places.giveBack('b');
    places.giveBack('b');
    assert.equal(takenBy(places, 'a'), 2);
  });

  it('are all taken by as many accounts, and then none is free', () => {
    const places = new SharedPlaces(3);
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].map((account) => places.take(account)),
      [true, true, true, false],
    );
  });
});

function takenBy(places: SharedPlaces, account: string): number {
  let taken = 0;
  while (places.take(account)) taken += 1;
  return taken;
}
