/** How a lease gets the next one, against a service with scripted answers: in time, and no more often than it helps. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FareboxError, type Lease, type LeaseOptions } from '@farebox/client';
import { until } from '../support/stack.ts';
import { EXPIRES_IN, leasesOfSuite, taken, type LeaseScript } from './lease-script.ts';
import { refusal, silence, type Step } from './scripted-service.ts';

/** The client stops using a lease three seconds before its end. */
const SHORT_SECONDS = 6;

describe('client: the supply of leases', () => {
  const { start, ending } = leasesOfSuite({ timeoutMs: 600_000 });

  const options: LeaseOptions & { journal?: undefined } = {
    apiKey: 'fare_ck_test_x',
    tools: ['search', 'dear'],
    amount: 1,
  };
  const open = async (script: LeaseScript, changes: Partial<LeaseOptions> = {}) => {
    const { service, farebox } = await start(script);
    const lease = ending(await farebox.lease({ ...options, ...changes, journal: undefined }));
    const paths = () => service.seen.map(({ path }) => path);
    return { lease, takes: () => paths().filter((path) => path === '/v1/leases').length };
  };

  for (const [what, renewal] of [
    ['cannot be renewed', refusal(409, 'lease_not_renewable')],
    ['was closed', refusal(409, 'lease_closed')],
    ['has ended while Farebox was away', refusal(503, 'service_unavailable')],
  ] as const) {
    it(`replaces a spare lease that ${what}`, async () => {
      const { lease, takes } = await open({ take: takeWithShortSpare, renew: () => renewal });
      for (let n = 0; n < 26; n += 1) lease.charge({ tool: 'search' });
      await until(() => takes() === 3 && lease.remaining > 1);
      for (let n = 0; n < 24; n += 1) lease.charge({ tool: 'search' });
      assert.equal(lease.charge({ tool: 'search' }).leaseId, 'lse_3');
    });
  }

  it('does not tell callers why the lease could not be renewed', async () => {
    const { lease } = await open({
      take: (n) => (n === 0 ? taken({ expiresIn: SHORT_SECONDS }) : silence),
      renew: () => refusal(409, 'lease_not_renewable'),
    });
    await until(() => lease.remaining === 0);
    assert.equal(refused(lease, 'search').code, 'lease_used_up');
  });

  it('takes the next lease by itself when Farebox is back after the end of the one before', async () => {
    let isAway = true;
    const away = refusal(503, 'service_unavailable');
    const { lease, takes } = await open({
      take: (n) => {
        if (n === 0) return taken({ expiresIn: SHORT_SECONDS });
        return isAway ? away : taken({ id: 'lse_2' });
      },
      renew: () => away,
    });
    await until(() => takes() === 2);
    isAway = false;
    await until(() => lease.remaining > 0);
    assert.equal(lease.charge({ tool: 'search' }).leaseId, 'lse_2');
  });

  /** The current lease has $0.10 left, and so has the next one. */
  const openWithRest = async (isRich: () => boolean) => {
    const opened = await open({ take: restOf(isRich) });
    opened.lease.charge({ tool: 'dear' });
    await until(() => opened.lease.remaining > 0.15);
    return opened;
  };

  it('keeps a small lease for the calls that it covers, and tells others why it is small', async () => {
    const { lease, takes } = await openWithRest(() => false);
    for (let n = 0; n < 50; n += 1) {
      const error = refused(lease, 'dear');
      assert.deepEqual([error.code, error.outcome], ['spend_limit_reached', 'not_charged']);
      await nextTurn();
    }
    const leases = Array.from({ length: 6 }, () => lease.charge({ tool: 'search' }).leaseId);
    assert.deepEqual(new Set(leases), new Set(['lse_0', 'lse_2']));
    // $1.00 at the start, then $1.00 again and the rest.
    assert.equal(takes(), 3);
  });

  it('asks for more than a small lease after a while', async () => {
    let isRich = false;
    const { lease } = await openWithRest(() => isRich);
    isRich = true;
    const { now } = Date;
    try {
      Date.now = () => now() + 60_000;
      assert.equal(refused(lease, 'dear').code, 'lease_used_up');
      await until(() => lease.remaining > 1);
      assert.equal(lease.charge({ tool: 'dear' }).leaseId, 'lse_3');
    } finally {
      Date.now = now;
    }
  });

  it('refuses a call that no lease can cover, and takes none for it', async () => {
    const { lease, takes } = await open({ take: restOf(() => true) }, { amount: 0.5 });
    for (let n = 0; n < 50; n += 1) {
      const error = refused(lease, 'dear');
      assert.deepEqual([error.code, error.outcome], ['exceeds_lease', 'not_charged']);
      assert.match(error.message, /\$0\.90.*\$0\.50/);
      await nextTurn();
    }
    lease.charge({ tool: 'dear', amount: '0.5' });
    assert.equal(takes(), 1);
  });
});

/** Each has its number. The spare one ends early. */
const takeWithShortSpare = (n: number) =>
  taken({ id: `lse_${n + 1}`, expiresIn: n === 1 ? SHORT_SECONDS : EXPIRES_IN });

/** The service has money for a lease of $0.10 after that of $1.00, until it has more. */
function restOf(isRich: () => boolean): (n: number) => Step {
  const tools = [
    { name: 'search', price: 0.02 },
    { name: 'dear', price: 0.9 },
  ];
  return (n) => (response, request) => {
    const { amount } = request.body as { amount: number };
    const facts = { remaining: 0.1, scope: 'total' };
    const isLeft = n === 0 || amount <= 0.1 || isRich();
    const step = isLeft
      ? taken({ id: `lse_${n}`, tools })
      : refusal(402, 'spend_limit_reached', facts);
    step(response, request);
  };
}

function refused(lease: Lease, tool: string): FareboxError {
  try {
    lease.charge({ tool });
  } catch (error) {
    assert.ok(FareboxError.isInstance(error), String(error));
    return error;
  }
  return assert.fail(`a call to ${tool} was decided`);
}
