/** A difference from Stripe that an operator settles is hidden with exactly its amounts, and hides no later loss. */
import assert from 'node:assert/strict';
import { wireId } from '../../../src/domain/ids.ts';
import { sql } from '../../../src/store/database.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { readBacklog } from '../../../src/store/operators/backlog.ts';
import { listDifferences } from '../../../src/store/top-ups/reconciliation.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { examineProcessor } from '../../../src/stripe/examine-processor.ts';
import { payMismatched } from '../../support/mismatched.ts';
import { farebox } from '../../support/stack.ts';
import {
  openTopUpHarness,
  QUICK_RETRIES,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

describe('a settled difference from Stripe', () => {
  let harness: TopUpHarness;
  let consumer: Consumer;

  before(async () => {
    harness = await openTopUpHarness({
      FIRST_ASK_MS: '3600000',
      RECONCILE_REVIEW_MS: '300,1000,3000,15000',
      ...QUICK_RETRIES,
    });
    await harness.startWorker();
  });
  beforeEach(async () => {
    consumer = await harness.newConsumer();
  });
  afterEach(async () => {
    assert.equal((await harness.books(consumer)).credited, 0);
    assert.deepEqual(await examineLedger(harness.database), []);
  });
  after(() => harness.close());

  it('is no longer listed, and is in the audit log', async () => {
    const { topUp } = await kept();
    await differs(topUp, 25);
    assert.match(await settle(topUp), /^Settled for tu_\w+: Stripe has a .*\(processor \$25/);
    await assert.rejects(settle(topUp), /Nothing differs about tu_\w+ that is not settled/);
    const [entry] = JSON.parse(
      `[${await farebox(['audit', '--limit', '1', '--json'], harness)}]`,
    ) as [{ action: string; details: Record<string, unknown> }];
    assert.equal(entry.action, 'difference.settled');
    assert.deepEqual(entry.details, {
      topUpId: wireId('topUp', topUp.id),
      kind: 'payment_mismatch',
      processor: 25,
      ledger: 0,
      reason: 'kept, and credited by hand',
    });
    await differs(topUp, undefined);
  });

  it('shows again when its payment is refunded, until that is settled', async () => {
    const { topUp, intent } = await kept();
    await settle(topUp);
    await harness.stripe.refunds.create({ payment_intent: intent, amount: 1_000 });
    await differs(topUp, 15);
    await settle(topUp);
    await differs(topUp, undefined);
    await harness.stripe.refunds.create({ payment_intent: intent });
    await differs(topUp, 0);
    assert.match(await settle(topUp), /: settled, but no longer true: Stripe has a payment/);
    await differs(topUp, undefined);
  });

  it('shows again when its payment is disputed, and when the dispute is won', async () => {
    const { topUp, intent } = await kept();
    await settle(topUp);
    await differs(topUp, undefined);
    await harness.control('disputes', { payment_intent: intent });
    await differs(topUp, 0);
    await settle(topUp);
    await differs(topUp, undefined);
    const [dispute] = (await harness.stripe.disputes.list({ payment_intent: intent })).data;
    await harness.control(`disputes/${dispute?.id}/close`, { status: 'won' });
    // These amounts were settled before, but not since.
    await differs(topUp, 25);
    await settle(topUp);
    await differs(topUp, undefined);
  });

  it('is the only one of its top-up that was settled, and of a kind that an adjustment can account for', async () => {
    const { topUp } = await kept();
    const plant = (kind: string) =>
      harness.database.query(sql.typeAlias('nothing')`
        insert into farebox.differences (top_up_id, kind, processor_micros, ledger_micros, payment_intent_ids)
        values (${topUp.id}, ${kind}, 20000000, 0, '{}')
      `);
    await plant('reversals');
    await assert.rejects(settle(topUp), /add --kind \((payment_mismatch|reversals), /);
    const settled = await settle(topUp, '--kind', 'payment_mismatch', '--json');
    assert.deepEqual(JSON.parse(settled), {
      topUpId: wireId('topUp', topUp.id),
      settled: 'payment_mismatch',
      processor: 25,
      ledger: 0,
    });
    await assert.rejects(settle(topUp), /reversals cannot be settled/);
    await assert.rejects(settle(topUp, '--kind', 'reversals'), /'reversals' is invalid/);
    await differs(topUp, undefined);
  });

  /** A payment that does not match, whose top-up an operator has ended. */
  async function kept(): ReturnType<typeof payMismatched> {
    const paid = await payMismatched(harness, consumer);
    await harness.workflow(paid.topUp.id).executeUpdate('cancel');
    await harness.statusBecomes(paid.topUp, 'expired');
    await harness.workflow(paid.topUp.id).result();
    await harness.reconcile();
    return paid;
  }

  function settle({ id }: TopUp, ...options: readonly string[]): Promise<string> {
    const settled = ['reconcile', '--settle', wireId('topUp', id), ...options];
    return farebox([...settled, '--reason', 'kept, and credited by hand'], harness);
  }

  /** Reconciliation, its count and doctor say that Stripe has this of a payment that does not match, or say nothing. */
  async function differs(topUp: TopUp, dollars: number | undefined): Promise<void> {
    await harness.reconcile();
    const all = await listDifferences(harness.database);
    const mine = all.filter(isAbout(topUp));
    const micros = dollars === undefined ? [] : [dollars * 1_000_000];
    assert.deepEqual(
      mine.map(({ kind, processorMicros, ledgerMicros }) => [kind, processorMicros, ledgerMicros]),
      micros.map((each) => ['payment_mismatch', each, 0]),
    );
    const { waiting } = await readBacklog(harness.database);
    assert.equal(waiting.find(({ what }) => what === 'differences')?.count, all.length);
    const findings = await examineProcessor(harness.database, harness.stripe);
    const details = findings
      .filter(({ subject }) => subject.includes(topUp.id))
      .map(({ detail }) => /Stripe (\d+), ledger 0/.exec(detail)?.[1]);
    assert.deepEqual(details, micros.map(String));
  }
});

function isAbout({ id }: TopUp): (difference: { readonly topUpId: string }) => boolean {
  return ({ topUpId }) => topUpId === id;
}
