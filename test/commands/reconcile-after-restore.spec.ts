/**
 * `farebox reconcile --after-restore` that is interrupted: it still says what it did, because a repeated one
 * does not.
 */
import assert from 'node:assert/strict';
import { readStripeConfig } from '../../src/config.ts';
import { wireId } from '../../src/domain/ids.ts';
import { sql } from '../../src/store/database.ts';
import { createSession, createStripe } from '../../src/stripe/calls.ts';
import { newOrder } from '../conformance/suite/order.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { newPayer } from '../support/payer.ts';
import { startSimulator, type Simulator } from '../support/simulators.ts';
import { farebox, type Environment } from '../support/stack.ts';

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

describe('farebox reconcile --after-restore', () => {
  let ledger: TestLedger;
  let simulator: Simulator;
  let env: Environment;

  before(async () => {
    ledger = await openTestLedger();
    simulator = await startSimulator();
    env = { ...simulator.env, DATABASE_URL: ledger.url };
    await ledger.database.query(sql.typeAlias('nothing')`
      create function public.refuse() returns trigger language plpgsql as $$
      begin
        raise exception 'refused in the end';
      end $$
    `);
  });
  after(async () => {
    await simulator?.stop();
    await ledger?.drop();
  });

  /** Returns the id of a top-up that was paid and that the ledger does not have. */
  async function payLost(): Promise<string> {
    const { accountId } = await newPayer(ledger.database);
    const order = { ...newOrder(), accountId };
    const stripe = createStripe(readStripeConfig(env));
    const { url } = await createSession(stripe, order, null, 'https://example.com');
    await fetch(url, { method: 'POST', body: new URLSearchParams({ card: '4242424242424242' }) });
    return wireId('topUp', order.id);
  }

  const run = (...options: readonly string[]) =>
    farebox(['reconcile', '--after-restore', ...options], { env }).then(
      (stdout): Ended => ({ code: 0, stdout, stderr: '' }),
      (error: unknown) => error as Ended,
    );

  /** It fails after it has credited everything, when it notes how far it came. */
  async function interrupted(...options: readonly string[]): Promise<Ended> {
    await ledger.database.query(sql.typeAlias('nothing')`
      create trigger zz_refuse before insert or update on farebox.reconciliation
      for each row execute function public.refuse()
    `);
    const ended = await run(...options);
    await ledger.database.query(sql.typeAlias('nothing')`
      drop trigger zz_refuse on farebox.reconciliation
    `);
    return ended;
  }

  it('says what it credited and entered before it failed, and has nothing to do again', async () => {
    const lost = await payLost();
    const { code, stdout, stderr } = await interrupted();
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^farebox: could not check: .*refused in the end/);
    assert.ok(
      stderr.endsWith(
        `. Before that, credited 1: ${lost}; entered 1: ${lost}. Repeat the command.\n`,
      ),
      stderr,
    );
    const { stdout: again } = await run('--json');
    const found = JSON.parse(again) as { readonly ok: boolean; readonly credited: unknown };
    assert.deepEqual([found.ok, found.credited], [true, []]);
  });

  it('says it in JSON', async () => {
    const lost = await payLost();
    const { code, stdout } = await interrupted('--json');
    assert.equal(code, 2);
    const { ok, error, credited, entered } = JSON.parse(stdout) as Record<string, unknown>;
    assert.equal(ok, null);
    assert.match((error as { message: string }).message, /refused in the end/);
    assert.deepEqual([credited, entered], [[lost], [{ topUpId: lost }]]);
  });

  it('credits nothing twice, and says nothing of what it did not do', async () => {
    const { code, stderr } = await interrupted();
    assert.equal(code, 2);
    assert.doesNotMatch(stderr, /Before that/);
  });
});
