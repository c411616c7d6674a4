/** Proxies name the client in several ways, and a value without an address names nobody. */
import assert from 'node:assert/strict';
import { addressIn } from '../../src/console/client-address.ts';

describe('the client that a proxy names', () => {
  for (const [value, address] of [
    ['203.0.113.5', '203.0.113.5'],
    ['203.0.113.5:4711', '203.0.113.5'],
    ['2001:db8::1', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%eth0]:443', 'fe80::1'],
    ['::ffff:203.0.113.5', '::ffff:203.0.113.5'],
    ['198.51.100.1, 203.0.113.5:4711', '203.0.113.5'],
    ['198.51.100.1,203.0.113.5 ', '203.0.113.5'],
    ['unknown, \t203.0.113.5', '203.0.113.5'],
    ['198.51.100.1, ', undefined],
    ['198.51.100.1, unknown', undefined],
    ['203.0.113.5 198.51.100.1', undefined],
    ['203.0.113.256', undefined],
    ['203.0.113.5:', undefined],
    ['203.0.113.5:http', undefined],
    ['[203.0.113.5', undefined],
    ['[]:443', undefined],
    ['', undefined],
    [undefined, undefined],
  ] as const) {
    it(`is ${address ?? 'nobody'} in ${value === undefined ? 'no header' : `"${value}"`}`, () => {
      assert.equal(addressIn(value), address);
    });
  }
});
