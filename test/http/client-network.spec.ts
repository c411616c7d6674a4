/** Limits by address hold although one customer of a provider has very many IPv6 addresses. */
import assert from 'node:assert/strict';
import { networkOf } from '../../src/http/client-network.ts';

describe('limits by address', () => {
  for (const [address, network] of [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '::ffff:203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['2001::3:4:5:6', '2001:0:0:0::/64'],
    ['2001:db8::3:4:5:6:7', '2001:db8:0:3::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['', ''],
  ] as const) {
    it(`count ${address || 'a closed connection'} as ${network || 'nobody'}`, () => {
      assert.equal(networkOf(address), network);
    });
  }
});
