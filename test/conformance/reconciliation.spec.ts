/** What reconciliation, doctor and a restore read from Stripe has the form that Stripe declares. */
import assert from 'node:assert/strict';
import { asMicros } from '../../src/domain/money.ts';
import { takeOverSince } from '../../src/stripe/after-restore.ts';
import { examineProcessor } from '../../src/stripe/examine-processor.ts';
import { recall } from '../../src/stripe/recall.ts';
import { readPage } from '../../src/stripe/reconcile.ts';
import { createSession } from '../../src/stripe/calls.ts';
import { makeRefund } from '../../src/stripe/reversals.ts';
import { admitTopUp } from '../../src/store/top-ups/admit-top-up.ts';
import { SimulatorProcess } from '../simulator/simulator-process.ts';
import { openTestLedger } from '../support/ledger.ts';
import { newPayer } from '../support/payer.ts';
import { checkedClient } from './checked-client.ts';
import { newOrder, payWith } from './suite/order.ts';

it('every read of reconciliation, doctor and a restore is as Stripe declares it, and enters what was lost', async () => {
  const ledger = await openTestLedger(1);
  const simulator = await SimulatorProcess.start('http://127.0.0.1:9/');
  try {
    const { database } = ledger;
    const client = checkedClient('sk_test_simulator', {
      host: '127.0.0.1',
      port: simulator.port,
      protocol: 'http',
    });
    const { stripe } = client;
    const refunded = await payWith(client, 'pm_card_visa');
    const { id, amountMicros } = refunded.order;
    await makeRefund(stripe, refunded.intent.id, { id, grossMicros: amountMicros });
    const disputed = await payWith(client, 'pm_card_visa');
    await simulator.control('POST', 'disputes', { payment_intent: disputed.intent.id });

    const until = Math.ceil(Date.now() / 1_000);
    for (const list of [
      'balanceTransactions',
      'refunds',
      'disputes',
      'earlyFraudWarnings',
    ] as const) {
      await readPage({ database, stripe }, { list, since: 1, until, after: null });
    }
    await examineProcessor(database, stripe);
    const { accountId } = await newPayer(database);
    const lost = { ...newOrder(), accountId };
    const { url } = await createSession(stripe, lost, null, 'https://example.com');
    await fetch(url, { method: 'POST', body: new URLSearchParams({ card: '4242424242424242' }) });
    // Its session has no customer, as that of a top-up link. So it names the account itself.
    const { entered, credited } = await takeOverSince({ database, stripe }, () => {});
    assert.deepEqual([entered, credited], [[lost.id], [lost.id]]);
    for (const method of ['checkout', 'direct'] as const) {
      const payer = await newPayer(database);
      const order = { ...payer, method: 'checkout', amountMicros: asMicros(25_000_000) } as const;
      const admitted = await admitTopUp(database, order);
      assert.ok(admitted.kind === 'admitted');
      const createdAt = '2026-01-01T00:00:00.000Z';
      const ageMs = Date.now() - Date.parse(createdAt);
      const waiting = { ...admitted.topUp, method, isClaimed: true, createdAt, ageMs };
      await recall({ database, stripe }, waiting);
      await client.stripe.customers.create({ metadata: { account_id: payer.accountId } });
      await recall({ database, stripe }, waiting);
    }
    assert.deepEqual(client.differences, []);
  } finally {
    await simulator.remove();
    await ledger.drop();
  }
});
