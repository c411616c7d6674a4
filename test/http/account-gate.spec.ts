/** How long work waits for the share of its account. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '../../src/domain/errors.ts';
import { AccountGate } from '../../src/http/account-gate.ts';

const ACCOUNT = 'acc_1';
const REST = { factor: 4, msMax: 250 };
const ONE_AT_A_TIME = { weightMax: 1, waitMsMax: 60_000, waitingMax: 10 };

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
    const gate = new AccountGate({ ...ONE_AT_A_TIME, rest: { ...REST, isUseful: () => true } });
    for (const [workMs, restMs] of [
      [20, 80],
      [200, 250],
    ] as const) {
      const first = gate.run(ACCOUNT, 1, async () => {
        await delay(workMs);
        return performance.now();
      });
      const second = gate.run(ACCOUNT, 1, async () => performance.now());
      // Timers may fire a millisecond early.
      assert.ok((await second) - (await first) >= restMs - 2);
    }
  });

  it('does not rest when there is nobody to rest for, and leaves other accounts alone', async () => {
    let isUseful = true;
    const rest = { ...REST, factor: 10_000, isUseful: () => isUseful };
    const gate = new AccountGate({ ...ONE_AT_A_TIME, rest });
    const order: string[] = [];
    const run = (account: string, name: string) =>
      gate.run(account, 1, async () => {
        await delay(1);
        order.push(name);
      });
    await Promise.all([run(ACCOUNT, 'first'), run(ACCOUNT, 'after a rest'), run('acc_2', 'other')]);
    assert.equal(order[2], 'after a rest');
    const began = performance.now();
    for (let n = 0; n < 20; n += 1) await run('acc_3', 'nobody waits');
    isUseful = false;
    await Promise.all(Array.from({ length: 10 }, () => run('acc_4', 'nobody charges')));
    assert.ok(performance.now() - began < 10 * REST.msMax);
  });
});
