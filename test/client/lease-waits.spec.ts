/** How long a lease waits before it asks again, against a service with scripted answers. */
import assert from 'node:assert/strict';
import { Farebox, type Lease, type LeaseOptions } from '@farebox/client';
import { closeSettled } from '../support/lease-requests.ts';
import { until } from '../support/stack.ts';
import { leasesOfSuite, renewed, settledAll, taken, type LeaseScript } from './lease-script.ts';
import { answer, refusal, ScriptedService, type Step } from './scripted-service.ts';

/** The first renewal is asked for after 8.5 seconds, and as many are left for another attempt on a busy machine. */
const SHORT_SECONDS = 20;
/** What a lease has: enough for the calls of a test, at $0.02 each. */
const DOLLARS = 1_000;
const WAIT_SECONDS = 2;
/** A timer may be a little early. */
const WAIT_MS_MIN = WAIT_SECONDS * 1_000 - 20;

describe('client: a lease that waits', () => {
  const { start, ending } = leasesOfSuite();

  const options: LeaseOptions & { journal?: undefined } = {
    apiKey: 'fare_ck_test_x',
    tools: ['search'],
    amount: 1,
    expiresIn: SHORT_SECONDS,
  };
  const open = async (script: LeaseScript) => {
    const { farebox } = await start(script);
    return ending(await farebox.lease(options));
  };

  it('asks for the next one once while it is refused and the current one covers all calls', async () => {
    let takes = 0;
    let settlements = 0;
    const poor = refusal(402, 'insufficient_balance', { balance: 0 });
    const lease = await open({
      take: (n) => {
        takes += 1;
        return n === 0 ? taken({ remaining: DOLLARS }) : poor;
      },
      settle: () => {
        settlements += 1;
        return settledAll;
      },
    });
    useHalf(lease);
    await lease.settle();
    // From now on, a second passes before each settlement.
    const before = settlements;
    await until(() => {
      lease.charge({ tool: 'search' });
      return settlements >= before + 3;
    });
    assert.equal(takes, 2);
  });

  it('takes, renews and settles no sooner than Retry-After says', async () => {
    const times = { take: [] as number[], renew: [] as number[], settle: [] as number[] };
    const wait = refusal(503, 'service_unavailable', {}, String(WAIT_SECONDS));
    const at = (kind: keyof typeof times, step: Step, isRefused: boolean) => {
      times[kind].push(performance.now());
      return isRefused ? wait : step;
    };
    const lease = await open({
      take: (n) =>
        at(
          'take',
          taken({ id: `lse_${n}`, expiresIn: SHORT_SECONDS, remaining: DOLLARS }),
          n === 1,
        ),
      renew: (_, n) => at('renew', renewed(), n === 0),
      settle: (_, n) => at('settle', settledAll, n === 0),
    });
    useHalf(lease);
    await until(() => {
      lease.charge({ tool: 'search' });
      return times.take.length >= 3 && times.renew.length >= 2 && times.settle.length >= 2;
    });
    const [, ...takes] = times.take;
    for (const [kind, [first = 0, second = 0]] of Object.entries({ ...times, take: takes })) {
      assert.ok(second - first > WAIT_MS_MIN, `${kind}: ${second - first}`);
    }
  });

  it('settles at once when it is closed during the time that Retry-After says', async () => {
    let settlements = 0;
    const lease = await open({
      settle: (_, n) => {
        settlements += 1;
        return n === 0 ? refusal(503, 'service_unavailable', {}, '3600') : settledAll;
      },
    });
    lease.charge({ tool: 'search' });
    await until(() => settlements === 1);
    await closeSettled(lease);
  });
});

/** And a call more, so that the client takes the next one in advance. */
function useHalf(lease: Lease): void {
  for (let n = 0; n <= DOLLARS / 0.02 / 2; n += 1) lease.charge({ tool: 'search' });
}

describe('client: the wait for an approval', () => {
  it('asks again no sooner than Retry-After says', async () => {
    const times: number[] = [];
    const wait = refusal(503, 'service_unavailable', {}, String(WAIT_SECONDS));
    const approved = answer(200, { id: 'apr_1', status: 'approved' });
    const timed =
      (step: Step): Step =>
      (...asked) => {
        times.push(performance.now());
        step(...asked);
      };
    await using api = await ScriptedService.start(timed(wait), timed(approved));
    const settings = { secretKey: 'fare_sk_test_x', baseUrl: api.url, maxRetries: 0 };
    const { status } = await new Farebox(settings).approvals.wait('apr_1');
    assert.equal(status, 'approved');
    const [first = 0, second = 0] = times;
    assert.ok(second - first > WAIT_MS_MIN, String(second - first));
  });
});
