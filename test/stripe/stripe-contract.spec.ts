/**
 * Our calls against stripe-mock, which holds each request to Stripe's own OpenAPI description: names, types and
 * what is required. Skipped where there is neither that program nor Go to build it.
 */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { join } from 'node:path';
import type { Stripe } from 'stripe';
import { asMicros, type Micros } from '../../src/domain/money.ts';
import { startChild, type Child } from '../../src/embedded/child.ts';
import { choosePort } from '../../src/embedded/ports.ts';
import { auditProcessor } from '../../src/stripe/audit-processor.ts';
import { takeOverSince } from '../../src/stripe/after-restore.ts';
import { recall } from '../../src/stripe/recall.ts';
import { readPage } from '../../src/stripe/reconcile.ts';
import { makeRefund, readReversals } from '../../src/stripe/reversals.ts';
import * as calls from '../../src/stripe/calls.ts';
import { recordProcessorCustomer } from '../../src/store/top-ups/processor-customers.ts';
import { admitTopUp } from '../../src/store/top-ups/top-ups.ts';
import { newPayer } from '../support/payer.ts';
import { openTestLedger } from '../support/ledger.ts';
import { BUILD_TIMEOUT_MS, findStripeMock } from '../support/stripe-mock.ts';

const topUp = {
  id: randomUUIDv7(),
  amountMicros: 25_000_000 as Micros,
  sessionExpiresAt: null,
  savesCard: false,
  isTaxed: false,
  taxMicros: 0 as Micros,
  taxCalculationId: null,
};

/** Every call of stripe.ts, once, and once more for each shape of its parameters. */
const CALLS: Readonly<Record<string, (stripe: Stripe) => Promise<unknown>>> = {
  createCustomer: (stripe) => calls.createCustomer(stripe, randomUUIDv7()),
  saveTestCard: (stripe) => calls.saveTestCard(stripe, randomUUIDv7(), 'cus_1'),
  createSession: (stripe) => calls.createSession(stripe, topUp, 'cus_1', 'https://example.com'),
  'createSession that expires sooner': (stripe) => {
    const sessionExpiresAt = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 3_600_000);
    const sooner = { ...topUp, sessionExpiresAt: sessionExpiresAt.toISOString() };
    return calls.createSession(stripe, sooner, 'cus_1', 'https://example.com');
  },
  readSession: (stripe) => calls.readSession(stripe, 'cs_1'),
  expireSession: (stripe) => calls.expireSession(stripe, 'cs_1'),
  createIntent: (stripe) => calls.createIntent(stripe, topUp, 'cus_1'),
  readIntent: (stripe) => calls.readIntent(stripe, 'pi_1'),
  confirmIntent: (stripe) => calls.confirmIntent(stripe, 'pi_1', 'pm_1'),
  cancelIntent: (stripe) => calls.cancelIntent(stripe, 'pi_1'),
  readReversals: (stripe) => readReversals(stripe, 'pi_1'),
  makeRefund: (stripe) =>
    makeRefund(stripe, 'pi_1', { id: topUp.id, grossMicros: topUp.amountMicros }),
};

describe('according to Stripe’s OpenAPI document, Stripe accepts', () => {
  let mock: Child | undefined;
  let stripe: Stripe;
  const refusals: unknown[] = [];

  before(async function () {
    this.timeout(BUILD_TIMEOUT_MS);
    const program = findStripeMock();
    if (program === undefined) {
      process.stderr.write('skipped: there is no stripe-mock, and no Go to build it\n');
      return this.skip();
    }
    const port = await choosePort();
    const apiBase = new URL(`http://127.0.0.1:${port}`);
    mock = await startChild({
      name: 'stripe-mock',
      command: [program, '-http-addr', apiBase.host],
      env: { PATH: process.env['PATH'] },
      logFile: join(process.env['TEST_FOLDER'] ?? '', `stripe-mock-${port}.log`),
      ready: () =>
        fetch(apiBase).then(
          () => true,
          () => false,
        ),
    });
    stripe = calls.createStripe({
      secretKey: 'sk_test_1',
      apiBase,
      webhookSecrets: [],
      timeoutMs: 10_000,
      stepsPerSecond: 10,
      tax: undefined,
    });
    stripe.on('response', (response: Stripe.ResponseEvent) => {
      if (response.status >= 400) refusals.push(response);
    });
  });
  after(() => mock?.stop());

  it('every call of stripe.ts, as tried here', () => {
    const tried = new Set(Object.keys(CALLS).map((name) => name.split(' ')[0]));
    const made = Object.keys(calls).filter((name) => name !== 'createStripe');
    assert.deepEqual(
      made.filter((name) => !tried.has(name)),
      [],
    );
  });

  for (const [name, call] of Object.entries(CALLS)) {
    it(name, async () => {
      await call(stripe);
      assert.deepEqual(refusals.splice(0), []);
    });
  }

  it('every read of reconciliation and doctor', async () => {
    const ledger = await openTestLedger(1);
    const { database } = ledger;
    try {
      for (const list of ['balanceTransactions', 'refunds', 'disputes'] as const) {
        for (const after of [null, 'x_1']) {
          await readPage({ database, stripe }, { list, since: 1, until: 2, after });
        }
      }
      await auditProcessor(database, stripe);
      await takeOverSince({ database, stripe }, () => {});
      const payer = await newPayer(database);
      const order = { ...payer, method: 'checkout', amountMicros: asMicros(25_000_000) } as const;
      const admitted = await admitTopUp(database, order);
      assert.ok(admitted.kind === 'admitted');
      const waiting = { ...admitted.topUp, isClaimed: true, createdAt: '2026-01-01T00:00:00.000Z' };
      await recall({ database, stripe }, waiting);
      await recordProcessorCustomer(database, payer.accountId, 'cus_1');
      await recall({ database, stripe }, waiting);
      await recall({ database, stripe }, { ...waiting, method: 'direct' });
      assert.deepEqual(refusals, []);
    } finally {
      await ledger.drop();
    }
  });

  it('nothing else', async () => {
    const odd = { amount: 100, currency: 'usd', no_such_parameter: 'x' };
    await assert.rejects(
      stripe.paymentIntents.create(odd),
      /additional properties are not allowed/,
    );
  });
});
