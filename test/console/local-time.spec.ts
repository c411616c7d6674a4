/** Instants in the fields of the console's forms, in the time zone of the browser. */
import assert from 'node:assert/strict';
import { instantOf, localOf } from '../../console/src/local-time.ts';

describe('a time in a field of the console', () => {
  const zone = process.env['TZ'];
  after(() => {
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
  });

  for (const [timeZone, instant, local] of [
    ['UTC', '2099-12-31T23:30:00.000Z', '2099-12-31T23:30'],
    ['Pacific/Auckland', '2099-12-31T23:30:00.000Z', '2100-01-01T12:30'],
    // The hours around the changes to and from daylight saving time.
    ['America/New_York', '2027-03-14T06:30:00.000Z', '2027-03-14T01:30'],
    ['America/New_York', '2027-03-14T10:00:00.000Z', '2027-03-14T06:00'],
    ['America/New_York', '2027-11-07T05:00:00.000Z', '2027-11-07T01:00'],
    ['America/New_York', '2027-11-07T10:00:00.000Z', '2027-11-07T05:00'],
    ['Europe/Berlin', '2027-03-28T00:30:00.000Z', '2027-03-28T01:30'],
    ['Europe/Berlin', '2027-10-31T02:30:00.000Z', '2027-10-31T03:30'],
    ['America/New_York', '9999-12-31T23:59:00.000Z', '9999-12-31T18:59'],
  ] as const) {
    it(`is that of the clock in ${timeZone} at ${instant}`, () => {
      process.env['TZ'] = timeZone;
      assert.equal(localOf(instant), local);
      assert.equal(instantOf(local), instant);
    });
  }

  it('is empty if there is none, or if it is in a year that the field cannot show', () => {
    process.env['TZ'] = 'Europe/Berlin';
    for (const none of [null, undefined, '9999-12-31T23:59:59Z']) {
      assert.equal(localOf(none), '');
      assert.equal(instantOf(localOf(none)), null);
    }
  });

  it('is the same for both hours that the clock shows twice', () => {
    process.env['TZ'] = 'America/New_York';
    for (const hour of ['05', '06']) {
      assert.equal(localOf(`2027-11-07T${hour}:00:00.000Z`), '2027-11-07T01:00');
    }
  });
});
