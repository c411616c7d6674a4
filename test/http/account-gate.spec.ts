/** How long work waits for the share of its account. */
import assert from 'node:assert/strict';
import { ApiError } from '../../src/domain/errors.ts';
import { AccountGate } from '../../src/http/account-gate.ts';

const ACCOUNT = 'acc_1';

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
});
