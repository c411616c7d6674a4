/**
 * One account, seen from everywhere: its lists, totals, statements, files and payments agree to the micro-dollar, with
 * taxed top-ups, holds, refunds of charges and top-ups, and a refund of a top-up that fails later.
 */
import assert from 'node:assert/strict';
import type { Stripe } from 'stripe';
import { readConfig } from '../../../src/config.ts';
import { DAY_MS } from '../../../src/domain/durations.ts';
import { uuidOf } from '../../../src/domain/ids.ts';
import { MICROS_PER_CENT, type Micros } from '../../../src/domain/money.ts';
import { UsageByDayReply, UsageReply } from '../../../src/schemas/balance.ts';
import { ChargeReply, ChargesReply } from '../../../src/schemas/charges.ts';
import { EarningsReply } from '../../../src/schemas/earnings.ts';
import {
  ConsumerStatementReply,
  DeveloperStatementReply,
} from '../../../src/schemas/statements.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import { getTopUp } from '../../../src/store/top-ups/top-ups.ts';
import { createStripe } from '../../../src/stripe/calls.ts';
import { createAccount, type TestAccount } from '../../support/accounts.ts';
import { proveBooks } from '../../support/books.ts';
import { endAll } from '../../support/end-all.ts';
import { capture, place, release } from '../../support/hold-requests.ts';
import { bodyOf, call, charge } from '../../support/http.ts';
import { balanceOf, control, openCheckout, topUpsOf } from '../../support/payments.ts';
import { startStack, until, type Stack } from '../../support/stack.ts';

/** What the hold that stays open reserves. */
const HELD = 0.25;

const month = () => new Date().toISOString().slice(0, 7);
const micros = (dollars: number | string) => Math.round(Number(dollars) * 1_000_000);

function add<T>(rows: readonly T[], amountOf: (row: T) => number | string | undefined): number {
  return rows.reduce((total, row) => total + micros(amountOf(row) ?? 0), 0);
}

describe('the books of an account', () => {
  let stack: Stack;
  let database: Database;
  let stripe: Stripe;
  let consumer: TestAccount;
  let developer: TestAccount;
  let intent: string;

  before(async () => {
    stack = await startStack({ env: { STRIPE_TAX: 'automatic', SAVE_TEST_CARD: 'false' } });
    const { databaseUrl, stripe: settings } = readConfig(stack.env);
    database = await createDatabase(databaseUrl, { maxPoolSize: 2, onError: () => {} });
    stripe = createStripe(settings);
    consumer = await createAccount(stack.env, 0);
    developer = await createAccount(stack.env, 0);
    const topUpId = await topUp();
    intent = (await getTopUp(database, topUpId)).paymentIntentId ?? assert.fail();
    await topUp();
    await spend();
    await refundTopUp(topUpId);
  });
  after(() =>
    endAll(
      () => proveBooks(stack.env),
      () => database?.end(),
      () => stack?.stop(),
    ),
  );

  /** $20.00, and $1.78 of tax. */
  async function topUp(): Promise<string> {
    const { topUpId, sessionUrl } = await openCheckout(stack.api, consumer, 20);
    const body = new URLSearchParams({ card: '4242424242424242', state: 'NY', shown: '2178' });
    await fetch(sessionUrl, { method: 'POST', body });
    const topUps = () => topUpsOf(stack.api, consumer);
    await until(
      async () => (await topUps()).find(({ id }) => id === topUpId)?.status === 'completed',
    );
    return uuidOf('topUp', topUpId) ?? assert.fail();
  }

  async function spend(): Promise<void> {
    const other = { ...consumer, developerKey: developer.developerKey };
    const made = async (by: TestAccount, tool: string, amount: number) =>
      bodyOf(await charge(stack.api, by, { tool, amount }), 201, ChargeReply).id;
    const refund = async (id: string, body: object) => {
      const { status } = await call(stack.api, 'POST', `/v1/charges/${id}/refund`, {
        key: developer.developerKey,
        body,
      });
      assert.equal(status, 201);
    };
    const partly = await made(other, 'search', 0.333333);
    const fully = await made(other, 'search', 1.000001);
    await made(other, 'fetch', 0.000001);
    await made(consumer, 'search', 2.5);
    await refund(partly, { amount: 0.111111 });
    await refund(partly, { amount: 0.000001 });
    await refund(fully, {});
    const captured = await place(stack.api, other, { amount: 3, tool: 'fetch' });
    await capture(stack.api, other, captured.id, { amount: 1.234567 });
    const released = await place(stack.api, other, { amount: 4 });
    await release(stack.api, other, released.id);
    await place(stack.api, other, { amount: HELD });
  }

  /** By an operator and in the dashboard; the refund in the middle fails once the others are made. */
  async function refundTopUp(topUpId: string): Promise<void> {
    const refunds = () => stripe.refunds.list({ payment_intent: intent, limit: 100 });
    await requestRefund(database, topUpId, 1_230_000 as Micros);
    await until(async () => (await refunds()).data.length === 1);
    const failing = await stripe.refunds.create({ payment_intent: intent, amount: 1_001 });
    await untilRefunded(2);
    await stripe.refunds.create({ payment_intent: intent, amount: 1_044 });
    await untilRefunded(3);
    await control(stack.simulator, `refunds/${failing.id}/fail`, {});
    // The failed one, and the share of the last one: given back, and taken again without the remainder.
    await untilRefunded(6);
  }

  /** Until this many movements have taken money for refunds of top-ups, or returned it. */
  const untilRefunded = (count: number) =>
    until(async () => {
      const { movements } = await statement();
      return movements.filter(({ kind }) => /^refund(_returned)?$/.test(kind)).length === count;
    });

  const get = (path: string, key: string) => call(stack.api, 'GET', path, { key });
  const usage = async (query: string) =>
    bodyOf(await get(`/v1/usage?${query}`, consumer.consumerKey), 200, UsageReply);
  const statement = async () =>
    bodyOf(
      await get(`/v1/statements/${month()}`, consumer.consumerKey),
      200,
      ConsumerStatementReply,
    );
  const earnedBy = async ({ developerKey }: TestAccount) => ({
    earnings: bodyOf(await get('/v1/earnings', developerKey), 200, EarningsReply),
    statement: bodyOf(
      await get(`/v1/statements/${month()}`, developerKey),
      200,
      DeveloperStatementReply,
    ),
    charges: bodyOf(await get('/v1/charges?limit=100', developerKey), 200, ChargesReply).charges,
  });
  /** Its rows, by the names of their columns. No cell has a comma here. */
  async function file(path: string, key: string): Promise<Readonly<Record<string, string>>[]> {
    const { status, body } = await get(path, key);
    assert.equal(status, 200);
    const [header = '', ...lines] = String(body).trimEnd().split('\r\n');
    return lines.map((line) => {
      const cells = line.split(',');
      return Object.fromEntries(header.split(',').map((name, place) => [name, cells[place] ?? '']));
    });
  }

  it('have one total of what was spent', async () => {
    const { charges, total } = await usage('limit=100');
    const spent = add(charges, ({ amount }) => amount) - add(charges, ({ refunded }) => refunded);
    assert.equal(spent, 3_956_789);
    assert.equal(micros(total), spent);
    const byTool = await Promise.all(['search', 'fetch'].map((tool) => usage(`tool=${tool}`)));
    assert.equal(
      add(byTool, (each) => each.total),
      spent,
    );
    const day = new Date(Date.now() - DAY_MS).toISOString().slice(0, 10);
    const daily = await get(`/v1/usage/daily?from=${day}`, consumer.consumerKey);
    assert.equal(
      add(bodyOf(daily, 200, UsageByDayReply).days, (each) => each.spent),
      spent,
    );
    const rows = await file('/v1/usage.csv', consumer.consumerKey);
    assert.equal(add(rows, ({ amount }) => amount) - add(rows, ({ refunded }) => refunded), spent);
  });

  it('have one balance, which is what the statement adds up to', async () => {
    const { movements, charges, openingBalance, closingBalance } = await statement();
    assert.equal(openingBalance, 0);
    const moved = add(movements, ({ amount }) => amount) - add(charges, ({ amount }) => amount);
    assert.equal(micros(closingBalance), moved);
    assert.equal(micros(await balanceOf(stack.api, consumer)) + micros(HELD), moved);
    const listed = (await usage('limit=100')).charges;
    for (const { tool, amount } of charges) {
      const ofTool = listed.filter((each) => each.tool === tool);
      assert.equal(
        micros(amount),
        add(ofTool, (each) => each.amount),
      );
    }
    const refunds = movements.filter(({ kind }) => kind === 'charge_refund');
    assert.equal(
      add(refunds, ({ amount }) => amount),
      add(listed, ({ refunded }) => refunded),
    );
    const rows = await file(`/v1/statements/${month()}.csv`, consumer.consumerKey);
    assert.equal(
      add(rows.slice(0, -1), ({ amount }) => amount),
      micros(closingBalance),
    );
    assert.equal(micros(rows.at(-1)?.['amount'] ?? ''), micros(closingBalance));
    assert.equal(
      add(rows, ({ tax }) => tax),
      add(movements, ({ tax }) => tax),
    );
    assert.deepEqual([...new Set(rows.map(({ complete }) => complete))], ['false']);
  });

  it('have what the processor kept of the payments, with tax', async () => {
    const movements = (await statement()).movements.filter(({ topUpId }) => topUpId !== null);
    const kept = add(movements, ({ amount }) => amount) + add(movements, ({ tax }) => tax);
    const { data } = await stripe.refunds.list({ payment_intent: intent, limit: 100 });
    const refunded = data
      .filter(({ status }) => status === 'succeeded')
      .reduce((total, { amount }) => total + amount, 0);
    assert.equal(kept, (2 * 2_178 - refunded) * MICROS_PER_CENT);
  });

  it('have one total of what each developer earned', async () => {
    for (const party of [consumer, developer]) {
      const { earnings, statement: earned, charges } = await earnedBy(party);
      const total = add(charges, ({ amount }) => amount) - add(charges, ({ refunded }) => refunded);
      assert.equal(micros(earnings.totalEarnings), total);
      assert.equal(
        add(Object.values(earnings.byTool), (amount) => amount),
        total,
      );
      assert.equal(micros(earned.closingEarnings), total);
      assert.equal(
        add(earned.earned, ({ amount }) => amount) - add(earned.refunds, ({ amount }) => amount),
        total,
      );
      const { developerKey } = party;
      const files = {
        earnings: await file('/v1/earnings.csv', developerKey),
        charges: await file('/v1/charges.csv', developerKey),
        statement: await file(`/v1/statements/${month()}.csv`, developerKey),
      };
      assert.equal(
        add(files.earnings, ({ amount }) => amount),
        total,
      );
      assert.equal(
        add(files.charges, ({ amount }) => amount) - add(files.charges, ({ refunded }) => refunded),
        total,
      );
      assert.equal(
        add(files.statement.slice(0, -1), ({ amount }) => amount),
        total,
      );
      assert.equal(micros(files.statement.at(-1)?.['amount'] ?? ''), total);
    }
    const both = await Promise.all([consumer, developer].map((party) => earnedBy(party)));
    assert.equal(
      add(both, ({ earnings }) => earnings.totalEarnings),
      micros((await usage('limit=1')).total),
    );
  });
});
