/** How long work waits for the share of its account. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '../../src/domain/errors.ts';
import { AccountGate, type Rest } from '../../src/http/account-gate.ts';
import { until } from '../support/stack.ts';

const ACCOUNT = 'acc_1';
const REST = { factor: 4, msMax: 250 };
const ONE_AT_A_TIME = { weightMax: 1, waitMsMax: 60_000, waitingMax: 50 };

describe('the share of an account', () => {
  it('refuses work that waited too long, but not work that may wait longer', async () => {
    const gate = new AccountGate({ weightMax: 1, waitMsMax: 20, waitingMax: 10 });
    const { promise: blocked, resolve: unblock } = Promise.withResolvers<void>();
    const first = gate.run(ACCOUNT, 1, () => blocked);
    const patient = gate.run(ACCOUNT, 1, async () => 'done', 60_000);
    await assert.rejects(
      gate.run(ACCOUNT, 1, async () => 'done'),
      (error) => error instanceof ApiError && error.code === 'rate_limited',
    );
    unblock();
    await first;
    assert.equal(await patient, 'done');
  });

  it('rests between two pieces of work for a multiple of the time that the first took, up to a limit', async () => {
    for (const [workMs, restMs] of [
      [20, 80],
      [200, 250],
    ] as const) {
      assert.ok((await restMsOf({ workMs, waiting: 32 })) >= restMs);
    }
  });

  it('rests for less when few requests wait', async () => {
    const rest = { factor: 100_000, msMax: 20_000 };
    // Again if the machine stood still meanwhile.
    await until(async () => {
      const restMs = await restMsOf({ workMs: 1, waiting: 1, rest });
      assert.ok(restMs >= rest.msMax / 32, `${restMs}`);
      return restMs < rest.msMax;
    });
  });

  it('does not rest when there is nobody to rest for, and leaves other accounts alone', async () => {
    let isUseful = true;
    const rest = { factor: 10_000, msMax: 1_000, isUseful: () => isUseful };
    const gate = new AccountGate({ ...ONE_AT_A_TIME, rest });
    const order: string[] = [];
    const run = (account: string, name: string) =>
      gate.run(account, 1, async () => {
        await delay(1);
        order.push(name);
      });
    const flood = Array.from({ length: 33 }, () => run(ACCOUNT, 'of the flood'));
    await run('acc_2', 'other');
    assert.ok(order.filter((name) => name === 'of the flood').length < 33);
    isUseful = false;
    await Promise.all(flood);
    // Again if the machine stood still meanwhile.
    await until(async () => {
      const began = performance.now();
      for (let n = 0; n < 20; n += 1) await run('acc_3', 'nobody waits');
      await Promise.all(Array.from({ length: 33 }, () => run('acc_4', 'nobody charges')));
      return performance.now() - began < 20 * rest.msMax;
    });
  });

  it('begins waiting work in order, so that small work does not overtake a larger piece forever', async () => {
    const gate = new AccountGate({ weightMax: 3, waitMsMax: 60_000, waitingMax: 10 });
    const { promise: blocked, resolve: unblock } = Promise.withResolvers<void>();
    const began: string[] = [];
    const run = (name: string, weight: number, work = Promise.resolve()) =>
      gate.run(ACCOUNT, weight, () => {
        began.push(name);
        return work;
      });
    const all = [run('first', 2, blocked), run('large', 2), run('small', 1)];
    unblock();
    await Promise.all(all);
    assert.deepEqual(began, ['first', 'large', 'small']);
  });

  it('begins what fits when a larger piece of work before it has waited too long', async () => {
    const gate = new AccountGate({ weightMax: 3, waitMsMax: 60_000, waitingMax: 10 });
    const { promise: blocked, resolve: unblock } = Promise.withResolvers<void>();
    const first = gate.run(ACCOUNT, 2, () => blocked);
    const large = gate.run(ACCOUNT, 2, async () => 'done', 20);
    const small = gate.run(ACCOUNT, 1, async () => 'done');
    await assert.rejects(large);
    assert.equal(await small, 'done');
    unblock();
    await first;
  });
});

/**
 * How long the first of many waiting requests waits, without the `workMs` of the work before it. Measured from the
 * beginning of that work: a timer counts from the beginning of the turn in which it is set, which may be before the
 * end of the work. Timers may fire a millisecond early.
 */
async function restMsOf({
  workMs,
  waiting,
  rest = REST,
}: {
  readonly workMs: number;
  readonly waiting: number;
  readonly rest?: Pick<Rest, 'factor' | 'msMax'>;
}): Promise<number> {
  const gate = new AccountGate({ ...ONE_AT_A_TIME, rest: { ...rest, isUseful: () => true } });
  const began = performance.now();
  const first = gate.run(ACCOUNT, 1, () => delay(workMs));
  const others = Array.from({ length: waiting }, () =>
    gate.run(ACCOUNT, 1, async () => performance.now()),
  );
  const [begins = 0] = await Promise.all(others);
  await first;
  return begins - began - workMs + 2;
}
