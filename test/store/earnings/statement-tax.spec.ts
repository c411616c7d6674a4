/** In a statement, amounts and tax of a top-up add up to what the processor kept of its payment. */
import assert from 'node:assert/strict';
import { asMicros } from '../../../src/domain/money.ts';
import { ClosedCharges } from '../../../src/store/charges/closed-charges.ts';
import { readConsumerStatement } from '../../../src/store/earnings/statements.ts';
import { planTax } from '../../../src/store/top-ups/plan-payment.ts';
import { credit } from '../../support/evidence.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { dispute, newPayer, processorId, refund, type Payer } from '../../support/payer.ts';

const CREDITED = 20_000_000;
const TAX = 1_780_000;
const PAID = CREDITED + TAX;
/** A dispute of $10.00: the share without tax is rounded down to the micro-dollar. */
const PART = 10_000_000;
const NET_PART = 9_182_736;

describe('the tax in a statement', () => {
  let ledger: TestLedger;
  let payer: Payer;
  let topUpId: string;

  before(async () => {
    ledger = await openTestLedger(1);
  });
  beforeEach(async () => {
    payer = await newPayer(ledger.database);
    topUpId = await taxedTopUp();
  });
  after(() => ledger?.drop());

  it('goes back with a lost dispute of the whole payment', async () => {
    const id = processorId('dp');
    await payer.report(topUpId, dispute(id, PAID));
    assert.deepEqual(await taxedMovements(), [`top_up ${CREDITED} ${TAX}`]);
    await payer.report(topUpId, dispute(id, PAID, 'lost'));
    assert.deepEqual(await taxedMovements(), [
      `top_up ${CREDITED} ${TAX}`,
      `dispute ${-CREDITED} ${-TAX}`,
    ]);
    assert.equal(await keptMicros(), 0);
  });

  it('goes back with a lost dispute of a part, and comes again if that is won after all', async () => {
    const id = processorId('dp');
    await payer.report(topUpId, dispute(id, PART, 'lost'));
    assert.deepEqual((await taxedMovements()).slice(1), [
      `dispute ${-NET_PART} ${NET_PART - PART}`,
    ]);
    assert.equal(await keptMicros(), PAID - PART);
    await payer.report(topUpId, dispute(id, PART, 'won'));
    assert.deepEqual((await taxedMovements()).slice(2), [
      `dispute_returned ${NET_PART} ${PART - NET_PART}`,
    ]);
    assert.equal(await keptMicros(), PAID);
  });

  it('goes back again with a dispute that is lost, won and lost again', async () => {
    const id = processorId('dp');
    for (const status of ['lost', 'won', 'lost'] as const) {
      await payer.report(topUpId, dispute(id, PART, status));
    }
    assert.deepEqual((await taxedMovements()).slice(3), [
      `dispute ${-NET_PART} ${NET_PART - PART}`,
    ]);
    assert.equal(await keptMicros(), PAID - PART);
  });

  it('goes back once with a lost dispute that takes the balance twice', async () => {
    await payer.charge(15_000_000);
    await payer.report(topUpId, dispute(processorId('dp'), PART, 'lost'));
    assert.deepEqual((await taxedMovements()).slice(1), [`dispute -5000000 ${NET_PART - PART}`]);
    await taxedTopUp();
    assert.deepEqual((await taxedMovements()).slice(3), [`dispute ${5_000_000 - NET_PART} 0`]);
    assert.equal(await keptMicros(), 2 * PAID - PART);
  });

  it('goes back with a refund and a lost dispute of the rest', async () => {
    await payer.report(topUpId, refund(processorId('re'), PAID - PART));
    await payer.report(topUpId, dispute(processorId('dp'), PART, 'lost'));
    assert.equal(await keptMicros(), 0);
  });

  async function taxedTopUp(): Promise<string> {
    const id = await payer.open(CREDITED);
    await planTax(ledger.database, id, true);
    assert.equal(await credit(ledger.database, id, asMicros(TAX)), 'credited');
    return id;
  }

  async function movements() {
    const now = new Date();
    const month = {
      fromMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth()),
      toMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1),
    };
    const charges = new ClosedCharges();
    const closed = await charges.countClosed(ledger.database, payer, month);
    const statement = await readConsumerStatement(ledger.database, charges, payer, month, closed);
    return statement.movements;
  }

  /** Kind, amount and tax. */
  async function taxedMovements(): Promise<string[]> {
    return (await movements()).map(
      ({ kind, amountMicros, taxMicros }) => `${kind} ${amountMicros} ${taxMicros}`,
    );
  }

  async function keptMicros(): Promise<number> {
    return (await movements()).reduce(
      (sum, { amountMicros, taxMicros }) => sum + amountMicros + taxMicros,
      0,
    );
  }
});
