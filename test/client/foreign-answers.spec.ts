/** A success that Farebox did not send, such as that of a proxy or of another service at this address. */
import assert from 'node:assert/strict';
import { Farebox, FareboxConsumer } from '@farebox/client';
import { ScriptedService, answer, raised } from './scripted-service.ts';

const apiKey = 'fare_ck_live_x';
const holdId = 'hld_1';
const leaseId = 'lse_1';
const entries = [{ sequence: 1, tool: 'search', amount: 1 }];

const RECEIPT = `hmac_sha256.1.e30.${'A'.repeat(43)}`;
/** A lease of Farebox, and answers that have less. */
const LEASE = {
  id: leaseId,
  remaining: 1,
  fence: 1,
  expiresIn: 300,
  tools: [{ name: 'search', price: 1 }],
};
const PARTIAL_LEASES = ['remaining', 'fence', 'expiresIn', 'tools'].map((name) => ({
  ...LEASE,
  [name]: undefined,
}));

type Call = (farebox: Farebox, consumer: FareboxConsumer) => Promise<unknown>;

const CALLS: Readonly<Record<string, Call>> = {
  charge: (farebox) => farebox.charge({ apiKey, tool: 'search', amount: 1 }),
  batch: (farebox) => farebox.batch([{ apiKey, tool: 'search', amount: 1 }]),
  refund: (farebox) => farebox.refund({ chargeId: 'chg_1' }),
  hold: (farebox) => farebox.holds.place({ apiKey, tool: 'search', amount: 1 }),
  capture: (farebox) => farebox.holds.capture({ holdId }),
  extension: (farebox) => farebox.holds.extend({ holdId, expiresIn: 60 }),
  release: (farebox) => farebox.holds.release({ holdId }),
  lease: (farebox) => farebox.leases.take({ apiKey, tools: ['search'], amount: 1 }),
  settlement: (farebox) => farebox.leases.settle({ leaseId, fence: 1, entries }),
  renewal: (farebox) => farebox.leases.renew({ leaseId, fence: 1 }),
  'release of a lease': (farebox) => farebox.leases.release({ leaseId }),
  'top-up': (_, consumer) => consumer.topUp({ amount: 5 }),
  checkout: (_, consumer) => consumer.checkout({ amount: 5 }),
  'public receipt': (farebox) => farebox.publicReceipt(RECEIPT),
};

const READS: Readonly<Record<string, Call>> = {
  balance: (_, consumer) => consumer.balance(),
  'set of receipt keys': (farebox) => farebox.verifyReceipt(RECEIPT),
  'list of charges': (farebox) => farebox.charges.list().page(),
  'list of holds': (_, consumer) => consumer.holds.list()[Symbol.asyncIterator]().next(),
  approval: (farebox) => farebox.approvals.get('apr_1'),
};

describe('client: a success that is not Farebox’s', () => {
  for (const [name, call] of Object.entries(CALLS)) {
    for (const body of [{}, [], { results: [{}] }]) {
      it(`${JSON.stringify(body)} does not count as a ${name}`, async () => {
        await using api = await ScriptedService.start(answer(200, body));
        const options = { baseUrl: api.url, maxRetries: 1 };
        const farebox = new Farebox({ secretKey: 'fare_sk_live_x', ...options });
        const consumer = new FareboxConsumer({ consumerKey: apiKey, ...options });
        const error = await raised(call(farebox, consumer));
        assert.deepEqual([error.code, error.outcome], ['service_unavailable', 'unknown']);
        assert.equal(api.seen.length, 2);
        assert.deepEqual(api.keys[1], api.keys[0]);
      });
    }
  }

  for (const [name, read] of Object.entries(READS)) {
    it(`does not count as a ${name}`, async () => {
      await using api = await ScriptedService.start(answer(200, {}));
      const options = { baseUrl: api.url, maxRetries: 1 };
      const farebox = new Farebox({ secretKey: 'fare_sk_live_x', ...options });
      const consumer = new FareboxConsumer({ consumerKey: apiKey, ...options });
      assert.equal((await raised(read(farebox, consumer))).code, 'service_unavailable');
      assert.equal(api.seen.length, 2);
    });
  }

  for (const body of [...PARTIAL_LEASES, { ...LEASE, tools: [null] }]) {
    it(`${JSON.stringify(body)} does not count as a lease to spend`, async () => {
      await using api = await ScriptedService.start(answer(201, body));
      const farebox = new Farebox({
        secretKey: 'fare_sk_live_x',
        baseUrl: api.url,
        maxRetries: 0,
      });
      const call = farebox.lease({ apiKey, tools: ['search'], amount: 1 });
      assert.equal((await raised(call)).code, 'service_unavailable');
    });
  }

  it('a page that has more, and does not say where, does not count as a page', async () => {
    await using api = await ScriptedService.start(answer(200, { charges: [], hasMore: true }));
    const farebox = new Farebox({ secretKey: 'fare_sk_live_x', baseUrl: api.url, maxRetries: 0 });
    assert.equal((await raised(farebox.charges.list().page())).code, 'service_unavailable');
  });
});
