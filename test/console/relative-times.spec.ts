/** How the console says how long ago something was, and how long the balance lasts. */
import assert from 'node:assert/strict';
import { ago, lasts } from '../../console/src/format.ts';

/** In the zone of the machine, as in the browser. */
const said = (then: Date, now: Date) => ago(then.toISOString(), now.getTime());

describe('a relative time in the console', () => {
  const noon = new Date(2026, 5, 15, 12);

  it('counts minutes and hours within the last 24 hours', () => {
    assert.equal(said(new Date(2026, 5, 15, 11, 59, 30), noon), 'just now');
    assert.equal(said(new Date(2026, 5, 15, 11, 59), noon), '1 minute ago');
    assert.equal(said(new Date(2026, 5, 14, 12, 1), noon), '23 hours ago');
  });

  it('counts calendar days before that, so that yesterday is the day before', () => {
    assert.equal(said(new Date(2026, 5, 14, 12), noon), 'yesterday');
    assert.equal(said(new Date(2026, 5, 14, 0, 0), noon), 'yesterday');
    assert.equal(said(new Date(2026, 5, 13, 23, 59), noon), '2 days ago');
    assert.equal(said(new Date(2026, 5, 13, 13), noon), '2 days ago');
    assert.equal(said(new Date(2026, 4, 15, 23), noon), '31 days ago');
  });
});

describe('how long a balance lasts', () => {
  it('is said in days at the rate of the last 7 days, and never as none', () => {
    assert.equal(lasts(1, 7), 'about 1 day');
    assert.equal(lasts(2.5, 7), 'about 2 days');
    assert.equal(lasts(1, 7.01), 'less than a day');
    assert.equal(lasts(0.000001, 700), 'less than a day');
    assert.equal(lasts(365, 7), 'about 365 days');
    assert.equal(lasts(366, 7), 'more than a year');
  });
});
