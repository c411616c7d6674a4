/**
 * An API process and a worker are replaced one after the other, as a deployment does: a new process starts beside the
 * old one, which then stops. Clients that retry see no failure, and nothing is lost.
 * test/migrations/previous-release.slow.spec.ts does the same between two releases.
 */
import assert from 'node:assert/strict';
import { createTestAccounts } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { startLoad } from '../support/load.ts';
import { balanceOf } from '../support/payments.ts';
import {
  startApiProcess,
  startProcesses,
  startWorkerProcess,
  until,
  type ServerProcess,
  type Stack,
} from '../support/stack.ts';

const BALANCE = 1_000;
const CHARGE_MICROS = 10_000;
const PAYMENT = 5;

describe('a rolling restart', () => {
  let stack: Stack<ServerProcess>;
  const more: ServerProcess[] = [];

  before(async () => {
    // The old and the new API process listen on one port; the kernel spreads the connections.
    stack = await startProcesses({ env: { SHARE_PORT: 'true' } });
  });
  after(async () => {
    await Promise.all(more.map((server) => server.stop()));
    await stack?.stop();
  });

  it('of the API and the worker shows clients that retry no failure, and loses nothing', async () => {
    const { env, api } = stack;
    const [charger, payer] = await createTestAccounts(stack.database.url, 2, BALANCE);
    assert.ok(charger && payer);
    const load = startLoad(api, charger, payer);
    try {
      for (const { start, old } of [
        { start: startApiProcess, old: api },
        { start: startWorkerProcess, old: stack.worker },
      ]) {
        await load.goesOn();
        more.push(await start({ env }));
        await load.goesOn();
        old.kill('SIGTERM');
        assert.equal(await old.exited, 'exit code 0');
      }
      await load.goesOn();
    } finally {
      await load.stop();
    }
    const spent = load.charges * CHARGE_MICROS;
    assert.equal(await balanceOf(api, charger), (BALANCE * 1e6 - spent) / 1e6);
    // A worker stopped between a payment and its credit: another one credits it.
    await until(async () => (await balanceOf(api, payer)) === BALANCE + load.payments * PAYMENT);
    await proveBooks(env);
  });
});
