/** A member that a call does not have, such as a misspelled `amount`, is refused and changes nothing. */
import assert from 'node:assert/strict';
import { Farebox, FareboxConsumer } from '@farebox/client';
import { paidTool } from '@farebox/client/mcp';
import type { Ground } from './grounds.ts';
import { fakeService, realService } from './grounds.ts';
import { leaseScript } from './lease-script.ts';
import { ScriptedService, charged, raised } from './scripted-service.ts';

type Ask = (ground: Ground, other: never) => Promise<unknown>;

/** The API refuses them: its bodies are closed. */
const ASKS: Readonly<Record<string, Ask>> = {
  refund: async ({ farebox, apiKey }, other) => {
    const { id } = await farebox.charge({ apiKey, tool: 'search', amount: 1 });
    return farebox.refund({ chargeId: id, ...(other as object) });
  },
  hold: ({ farebox, apiKey }, other) =>
    farebox.holds.place({ apiKey, tool: 'search', amount: 1, ...(other as object) }),
  capture: async ({ farebox, apiKey }, other) => {
    const { id } = await farebox.holds.place({ apiKey, tool: 'search', amount: 1 });
    return farebox.holds.capture({ holdId: id, ...(other as object) });
  },
  extension: async ({ farebox, apiKey }, other) => {
    const { id } = await farebox.holds.place({ apiKey, tool: 'search', amount: 1 });
    return farebox.holds.extend({ holdId: id, expiresIn: 60, ...(other as object) });
  },
  'change of a tool': async ({ farebox }, other) => {
    const { id } = await farebox.tools.create({ name: 'made' });
    return farebox.tools.update(id, other);
  },
  'quote of a charge': async ({ farebox }, other) => {
    await farebox.tools.create({ name: 'made', price: 1 });
    return farebox.quote({ tool: 'made', ...(other as object) });
  },
  'spend key': async ({ consumer }, other) =>
    consumer.budgets.createKey((await consumer.budgets.create({ name: 'agent' })).id, other),
  'closed budget': async ({ consumer }, other) =>
    consumer.budgets.close((await consumer.budgets.create({ name: 'agent' })).id, other),
  'rolled key': async ({ consumer }, other) => {
    const { id } = await consumer.budgets.create({ name: 'agent' });
    return consumer.budgets.rollKey((await consumer.budgets.createKey(id)).id, other);
  },
  'revoked key': async ({ consumer }, other) => {
    const { id } = await consumer.budgets.create({ name: 'agent' });
    return consumer.budgets.revokeKey((await consumer.budgets.createKey(id)).id, other);
  },
  'list of charges': ({ farebox }, other) => farebox.charges.list(other).page(),
  'list of usage': ({ consumer }, other) => consumer.charges.list(other).page(),
  'list of holds': ({ farebox }, other) => farebox.holds.list(other).page(),
  'list of budgets': ({ consumer }, other) => consumer.budgets.list(other).page(),
  'list of spend keys': async ({ consumer }, other) =>
    consumer.budgets.listKeys((await consumer.budgets.create({ name: 'agent' })).id, other).page(),
  'list of a budget’s usage': async ({ consumer }, other) =>
    consumer.budgets.usage((await consumer.budgets.create({ name: 'agent' })).id, other).page(),
  'list of approvals': ({ consumer }, other) => consumer.approvals.list(other).page(),
  'list of tools': ({ farebox }, other) => farebox.tools.list(other).page(),
  earnings: ({ farebox }, other) => farebox.earnings(other),
};

/** Only the service has them. */
const SERVICE_ASKS: Readonly<Record<string, Ask>> = {
  decision: ({ consumer }, other) =>
    consumer.approvals.decide(`apr_${'0'.repeat(32)}`, {
      decision: 'once',
      ...(other as object),
    }),
  lease: ({ farebox, apiKey }, other) =>
    farebox.leases.take({ apiKey, tools: ['search'], amount: 1, ...(other as object) }),
  settlement: ({ farebox }, other) =>
    farebox.leases.settle({ leaseId: 'x', entries: [], ...(other as object) }),
  renewal: ({ farebox }, other) => farebox.leases.renew({ leaseId: 'x', ...(other as object) }),
  'low balance': ({ farebox }, other) =>
    farebox.lowBalance.update({ threshold: 5, ...(other as object) }),
  'webhook secret': ({ farebox }, other) => farebox.webhookEndpoints.rollSecret('x', other),
  'usage by day': ({ consumer }, other) =>
    consumer.usageByDay({ from: '2026-11-01', ...(other as object) }),
  quote: ({ consumer }, other) => consumer.topUps.quote({ amount: 5, ...(other as object) }),
};

for (const [name, service] of Object.entries({ service: realService(), fake: fakeService() })) {
  describe(`client: a member that the ${name} does not know`, () => {
    let ground: Ground;

    before(() => service.start());
    beforeEach(async () => {
      ground = await service.open();
    });
    after(() => service.stop());

    const asks = name === 'service' ? { ...ASKS, ...SERVICE_ASKS } : ASKS;
    for (const [what, ask] of Object.entries(asks)) {
      it(`refuses a ${what}, and names the member`, async () => {
        const error = await raised(ask(ground, { amonut: '0.01' } as never));
        assert.deepEqual([error.code, error.param], ['invalid_request', 'amonut'], error.message);
      });
    }

    it('charges, captures and refunds nothing', async () => {
      const { farebox, apiKey, consumer } = ground;
      const { id: chargeId } = await farebox.charge({ apiKey, tool: 'search', amount: 1 });
      const { id: holdId } = await farebox.holds.place({ apiKey, tool: 'search', amount: 2 });
      const before = await consumer.balance();
      await raised(farebox.refund({ chargeId, amonut: '0.01' } as never));
      await raised(farebox.holds.capture({ holdId, ammount: '0.10' } as never));
      assert.deepEqual(await consumer.balance(), before);
      assert.equal((await farebox.holds.get(holdId)).status, 'open');
    });
  });
}

describe('client: a member that nothing would read', () => {
  const secretKey = 'fare_sk_test_x';
  const apiKey = 'fare_ck_test_x';
  const charge = { apiKey, tool: 'search', amount: 1 };

  const unsent: Readonly<
    Record<string, (farebox: Farebox, consumer: FareboxConsumer) => Promise<unknown>>
  > = {
    charge: (farebox) => farebox.charge({ ...charge, idempotency_key: 'a' } as never),
    'charge that asks': (farebox) => farebox.charge({ ...charge, ask: { reson: 'x' } } as never),
    'top-up': (_, consumer) => consumer.topUp({ amount: 5, idempotency_key: 'a' } as never),
    checkout: (_, consumer) => consumer.checkout({ amount: 5, savecard: true } as never),
    tool: (farebox) => farebox.tools.create({ name: 'x', prise: 1 } as never),
    release: (farebox) => farebox.holds.release({ holdId: 'hld_1', amount: 1 } as never),
    'release of a lease': (farebox) =>
      farebox.leases.release({ leaseId: 'lse_1', final: true } as never),
    lease: (farebox) =>
      farebox.lease({ apiKey, tools: ['search'], amount: 1, jornal: 'x' } as never),
    wait: (farebox) => farebox.approvals.wait('apr_1', { timeout: 1 } as never),
  };
  for (const [what, ask] of Object.entries(unsent)) {
    it(`sends no ${what}`, async () => {
      await using api = await ScriptedService.start(charged);
      const farebox = new Farebox({ secretKey, baseUrl: api.url });
      const consumer = new FareboxConsumer({ consumerKey: apiKey, baseUrl: api.url });
      await assert.rejects(ask(farebox, consumer), { name: 'TypeError', message: /not a member/ });
      assert.deepEqual(api.seen, []);
    });
  }

  it('is no reason to refuse a call when it is undefined', async () => {
    await using api = await ScriptedService.start(charged);
    const farebox = new Farebox({ secretKey, baseUrl: api.url });
    const options = { idempotencyKey: undefined } as never;
    assert.equal(
      (await farebox.charge({ ...charge, key: undefined } as never, options)).paid,
      true,
    );
  });

  it('decides no call under a lease, and is refused by its settle() and close()', async () => {
    await using api = await ScriptedService.start(leaseScript({}));
    const farebox = new Farebox({ secretKey, baseUrl: api.url });
    const lease = await farebox.lease({ apiKey, tools: ['search'], amount: 1 });
    assert.throws(() => lease.charge({ tool: 'search', amonut: '0.01' } as never), TypeError);
    await assert.rejects(async () => lease.settle({ timeout: 1 } as never), TypeError);
    await assert.rejects(async () => lease.close({ timeout: 1 } as never), TypeError);
    assert.equal(lease.remaining, 1);
    await lease.close();
  });

  it('is refused when a client or a paid call is created', () => {
    const options = { secretKey, baseUrl: 'http://127.0.0.1:1' };
    assert.throws(
      () => new Farebox({ ...options, onUnavailble: 'run_unpaid' } as never),
      TypeError,
    );
    assert.throws(
      () => new FareboxConsumer({ consumerKey: apiKey, retries: 1 } as never),
      TypeError,
    );
    const paid = { tool: 'search', price: 1, timeout: 1 } as never;
    assert.throws(() => paidTool(new Farebox(options), paid, () => ({})), TypeError);
  });
});
