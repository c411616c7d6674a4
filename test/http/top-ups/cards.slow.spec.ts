/** The saved cards: seen, chosen, added and removed by their owner alone, and confirmed at the bank where it asks. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { CONSENT_TERMS } from '../../../src/domain/consent-terms.ts';
import { BalanceReply } from '../../../src/schemas/balance.ts';
import { CardSetupReply, CardsReply } from '../../../src/schemas/cards.ts';
import {
  CheckoutReply,
  TopUpRecord,
  TopUpReply,
  TopUpsReply,
} from '../../../src/schemas/top-ups.ts';
import { createAccount, type TestAccount } from '../../support/accounts.ts';
import { assertError, bodyOf, call, charge } from '../../support/http.ts';
import { askForTopUp, control, faultsOf, forgetFaults } from '../../support/payments.ts';
import { holdAccount } from '../../support/row-locks.ts';
import { signIn } from '../../support/sessions.ts';
import { type Simulator } from '../../support/simulators.ts';
import { startStack, until, type Stack } from '../../support/stack.ts';

const TERMS = { termsVersion: CONSENT_TERMS.version };
/** Needs the cardholder, unless it was set up. */
const CAREFUL = '4000002500003155';

const INTENTS = '/v1/payment_intents/';

/** Can be saved; each payment with it is declined. */
const DECLINED = '4000000000000341';

function submit(url: string, fields: Record<string, string>): Promise<Response> {
  return fetch(url, { method: 'POST', body: new URLSearchParams(fields) });
}

/** Follows the page to the bank. Returns where the bank sends the cardholder. */
async function atBank(page: string, result: string): Promise<string> {
  const leaving = await (await submit(page, {})).text();
  const [, bank = ''] = /href="([^"]+\/pay\/pi_\w+)"/.exec(leaving) ?? [];
  const answer = (await (await submit(bank, { result })).json()) as { return_url: string };
  return answer.return_url;
}

/** How often the processor was asked about payments meanwhile, for each two seconds that have begun. */
async function askedDuring(simulator: Simulator, flood: () => Promise<void>): Promise<number> {
  const times = 1_000_000;
  const slower = { method: '*', path: INTENTS, kind: 'delay', ms: 1, times };
  await control(simulator, 'faults', slower);
  const beganMs = performance.now();
  await flood();
  const periods = Math.ceil((performance.now() - beganMs) / 2_000);
  const [left] = await faultsOf(simulator);
  await forgetFaults(simulator);
  return (times - (left?.times ?? 0)) / periods;
}

describe('saved cards', () => {
  let stack: Stack;
  let sql: Client;
  let account: TestAccount;
  let headers: { cookie: string; origin: string };

  before(async () => {
    stack = await startStack({
      env: {
        DEFAULT_CONSENT_CEILING: undefined,
        SAVE_TEST_CARD: 'false',
        DEV_MAIL: 'true',
        FIRST_ASK_MS: '3600000',
      },
    });
    sql = new Client({ connectionString: stack.database.url });
    await sql.connect();
  });
  beforeEach(async () => {
    await control(stack.simulator, 'webhooks', { mode: 'deliver' });
    ({ account, headers } = await owner());
    await post('/v1/consent', { ceiling: 1_000, ...TERMS });
  });
  after(async () => {
    await sql?.end();
    await stack?.stop();
  });

  async function owner() {
    const created = await createAccount(stack.env, 0);
    const cookie = await signIn(stack.api, stack.database.url, created.email);
    return { account: created, headers: { cookie, origin: stack.api.url } };
  }

  const get = (path: string) => call(stack.api, 'GET', path, { headers });
  const post = (path: string, body: object = {}) =>
    call(stack.api, 'POST', path, { headers, body });
  const askFor = (path: '/v1/checkout' | '/v1/top-up', body: object) =>
    askForTopUp(stack.api, path, { headers, body });
  const cards = async () => bodyOf(await get('/v1/cards'), 200, CardsReply).cards;
  const balance = async () => bodyOf(await get('/v1/balance'), 200, BalanceReply).balance;

  /** A page that saves the card without a payment. */
  async function setUp(card: string): Promise<void> {
    const { url } = bodyOf(await post('/v1/cards/setup'), 201, CardSetupReply);
    assert.equal((await submit(url, { card })).status, 200);
  }

  async function payAndSave(card: string): Promise<void> {
    const opened = bodyOf(await askFor('/v1/checkout', { amount: 5 }), 201, CheckoutReply);
    await submit(opened.sessionUrl ?? '', { card, save: 'true' });
  }

  /** Saved at a checkout by the payer's own choice, and not set up. */
  async function saveAtCheckout(card: string): Promise<void> {
    await payAndSave(card);
    await until(async () => (await balance()) === 5);
  }

  it('are set up without a payment, listed, chosen and removed', async () => {
    assert.deepEqual(await cards(), []);
    await setUp('4242424242424242');
    await setUp('5555555555554444');
    const [newest, older] = await cards();
    assert.ok(newest && older);
    assert.deepEqual([newest.lastFour, newest.isCharged], ['4444', true]);
    assert.deepEqual([older.lastFour, older.isCharged], ['4242', false]);

    const chosen = bodyOf(await post(`/v1/cards/${older.id}/choose`), 200, CardsReply).cards;
    assert.deepEqual(
      chosen.map(({ isCharged }) => isCharged),
      [false, true],
    );
    assert.equal(bodyOf(await askFor('/v1/top-up', { amount: 5 }), 201, TopUpReply).balance, 5);
    const { rows } = await sql.query<{ details: object }>(
      `select details from farebox.audit_entries where action = 'card.chosen' order by number desc limit 1`,
    );
    assert.deepEqual(rows[0]?.details, {
      processor_card_id: older.id,
      before: { processor_card_id: null },
    });

    const left = bodyOf(await post(`/v1/cards/${older.id}/remove`), 200, CardsReply).cards;
    assert.deepEqual(left, [newest]);
  });

  it('leave the other reads of the account alone while the processor takes long to list them', async () => {
    await setUp('4242424242424242');
    const path = '/v1/payment_methods';
    const slow = { method: 'GET', path, kind: 'delay', ms: 3_500, times: 2 };
    await control(stack.simulator, 'faults', slow);
    const asked = [cards(), cards()];
    await until(async () => (await faultsOf(stack.simulator))[0]?.times !== 2);
    assert.equal(await balance(), 0);
    for (const { length } of await Promise.all(asked)) assert.equal(length, 1);
  });

  it('are removed by asking again, when it is unknown whether they were', async () => {
    await setUp('4242424242424242');
    await setUp('5555555555554444');
    const [lost, kept] = await cards();
    assert.ok(lost && kept);
    await post(`/v1/cards/${kept.id}/choose`);
    const left = [{ ...kept, isCharged: true }];
    const chosen = async () => {
      const { rows } = await sql.query<{ id: string | null }>(
        'select processor_card_id as id from farebox.accounts where email = $1',
        [account.email],
      );
      return rows[0]?.id;
    };
    const remove = ({ id }: { readonly id: string }) => post(`/v1/cards/${id}/remove`);

    // The processor removes it, and its answer does not arrive.
    const path = `/v1/payment_methods/${lost.id}/detach`;
    // The library sends it once more when a kept connection ends.
    const fault = { method: 'POST', path, kind: 'do_then_drop', times: 2 };
    await control(stack.simulator, 'faults', fault);
    assertError(await remove(lost), 500, 'outcome_unknown');
    assert.deepEqual(await cards(), left);
    assert.deepEqual(bodyOf(await remove(lost), 200, CardsReply).cards, left);
    assert.equal(await chosen(), kept.id);

    // It removes it, and we cannot forget it.
    const row = await holdAccount(stack.database.url, account.consumerId);
    assertError(await remove(kept), 500, 'outcome_unknown');
    await row.release();
    assert.equal(await chosen(), kept.id);
    assertError(await post(`/v1/cards/${kept.id}/choose`), 404, 'not_found');
    assert.deepEqual(bodyOf(await remove(kept), 200, CardsReply).cards, []);
    assert.equal(await chosen(), null);
  });

  it('are still there after an answer that says so', async () => {
    await setUp('4242424242424242');
    const [card] = await cards();
    const path = `/v1/payment_methods/${card?.id}/detach`;
    await control(stack.simulator, 'faults', { method: 'POST', path, kind: 'error', status: 429 });
    assertError(await post(`/v1/cards/${card?.id}/remove`), 503, 'service_unavailable');
    assert.deepEqual(await cards(), [card]);
  });

  it('belong to their owner: nobody else, and no key, sees or changes them', async () => {
    await setUp('4242424242424242');
    const [card] = await cards();
    const other = await owner();
    for (const verb of ['choose', 'remove']) {
      const path = `/v1/cards/${card?.id}/${verb}`;
      const tried = await call(stack.api, 'POST', path, { headers: other.headers, body: {} });
      assertError(tried, 404, 'not_found');
      const byKey = await call(stack.api, 'POST', path, { key: account.consumerKey, body: {} });
      assertError(byKey, 401, 'session_required');
    }
    for (const id of ['pm_card_visa', 'pm_1', 'x'.repeat(300)]) {
      assertError(await post(`/v1/cards/${id}/remove`), 404, 'not_found');
    }
    assert.deepEqual(await cards(), [card]);
  });

  it('are set up, at a checkout too, only with the consent of the owner', async () => {
    await post('/v1/consent/withdraw');
    assertError(await post('/v1/cards/setup'), 403, 'consent_required');
    const body = { amount: 5, saveCard: true };
    assertError(await askFor('/v1/checkout', body), 403, 'consent_required', undefined, {
      topUpUrl: `${stack.api.url}/top-up`,
    });
    await post('/v1/consent', { ceiling: 1_000, ...TERMS });
    const { sessionUrl } = bodyOf(await askFor('/v1/checkout', body), 201, CheckoutReply);
    assert.match(await (await fetch(sessionUrl ?? '')).text(), /You allow this service to charge/);
    await submit(sessionUrl ?? '', { card: CAREFUL });
    await until(async () => (await balance()) === 5);
    assert.equal(bodyOf(await askFor('/v1/top-up', { amount: 5 }), 201, TopUpReply).balance, 10);
  });

  it('are not saved by a checkout that nobody asked to, and the page of the refusal says so', async () => {
    const { sessionUrl } = bodyOf(await askFor('/v1/checkout', { amount: 5 }), 201, CheckoutReply);
    await submit(sessionUrl ?? '', { card: CAREFUL });
    await until(async () => (await balance()) === 5);
    const { body } = await askFor('/v1/top-up', { amount: 5 });
    assert.partialDeepStrictEqual(body, { error: { code: 'no_saved_card' } });
    const { docUrl } = (body as { error: { docUrl: string } }).error;
    assert.match(await (await fetch(docUrl)).text(), /at a checkout with <code>saveCard<\/code>/);
  });

  it('are confirmed at the bank, from a page that leads there and back', async () => {
    await saveAtCheckout(CAREFUL);
    const asked = bodyOf(await askFor('/v1/top-up', { amount: 20 }), 202, TopUpReply);
    assert.equal(asked.status, 'pending');
    const page = asked.sessionUrl ?? '';
    assert.equal(page, `${stack.api.url}/top-up/confirm?id=${asked.topUpId}`);
    const path = `/v1/top-up/${asked.topUpId}`;
    assert.equal(bodyOf(await get(path), 200, TopUpRecord).sessionUrl, page);
    assert.match(
      await (await fetch(page)).text(),
      /Your bank wants you to confirm a top-up of \$20\.00/,
    );

    const back = await atBank(page, 'failed');
    assert.match(await (await fetch(back)).text(), /did not confirm the payment/);
    const returned = await atBank(page, 'succeeded');
    await fetch(returned);
    await until(async () => (await balance()) === 25);
    const done = bodyOf(await get(path), 200, TopUpRecord);
    assert.deepEqual([done.status, done.sessionUrl], ['completed', undefined]);
    assert.match(await (await fetch(page)).text(), /The top-up of \$20\.00 was paid/);
    assert.match(await (await submit(page, {})).text(), /The top-up of \$20\.00 was paid/);
    const unknown = page.replace(asked.topUpId, 'tu_01a1fd6455e57aa3b31e95f51a');
    for (const url of [unknown, `${stack.api.url}/top-up/confirm`]) {
      assert.equal((await fetch(url)).status, 404);
      assert.equal((await submit(url, {})).status, 404);
    }
  });

  it('are confirmed on a page that does not say that nothing was paid unless it knows', async () => {
    await saveAtCheckout(CAREFUL);
    // No report may lead the workflow to the payment before the pages below have answered.
    await control(stack.simulator, 'webhooks', { mode: 'hold' });
    const asked = bodyOf(await askFor('/v1/top-up', { amount: 20 }), 202, TopUpReply);
    const page = asked.sessionUrl ?? '';
    const { rows } = await sql.query<{ id: string }>(
      `select payment_intent_id as id from farebox.top_ups where status = 'pending'`,
    );
    const path = `/v1/payment_intents/${rows[0]?.id}/confirm`;
    const fault = { method: 'POST', path, times: 2 };
    await control(stack.simulator, 'faults', { ...fault, kind: 'do_then_drop' });
    const lost = await submit(page, {});
    assert.equal(lost.status, 500);
    assert.match(await lost.text(), /you may have paid. Try again: you pay only once/);
    // For two seconds, everybody who opens the page gets the same answer.
    const returned = await until(() => atBank(page, 'succeeded').catch(() => undefined));

    await sql.query('begin');
    // Which only the hint to the workflow needs.
    await sql.query('lock table farebox.outbox in access exclusive mode');
    const received = await fetch(returned);
    // Another tab, where an earlier try has failed, or Stripe refuses to answer.
    const other = await fetch(`${page}&redirect_status=failed`);
    const intents = { method: 'GET', path: INTENTS, times: 100 };
    await control(stack.simulator, 'faults', { ...intents, kind: 'error', status: 429 });
    const busy = await submit(page, {});
    await forgetFaults(stack.simulator);
    await sql.query('rollback');
    await control(stack.simulator, 'webhooks', { mode: 'deliver' });
    assert.match(await other.text(), /did not confirm the payment. Try again: you pay only once/);
    assert.match(
      await busy.text(),
      /cannot be reached right now. Try again later: you pay only once/,
    );
    assert.equal(busy.status, 503);
    assert.equal(received.status, 200);
    assert.match(await received.text(), /Payment processing/);
    await until(async () => (await balance()) === 25);
  });

  it('are confirmed on a page that does not say that a payment was received unless it was', async () => {
    await saveAtCheckout(CAREFUL);
    const asked = bodyOf(await askFor('/v1/top-up', { amount: 20 }), 202, TopUpReply);
    const page = asked.sessionUrl ?? '';
    // A card that was removed, and one that is declined.
    for (const [status, code] of [
      [400, 'payment_method_not_available'],
      [402, 'card_declined'],
    ] as const) {
      await control(stack.simulator, 'faults', {
        method: 'POST',
        path: INTENTS,
        kind: 'error',
        status,
        code,
      });
      const refused = await until(async () => {
        const now = await submit(page, {});
        return (await faultsOf(stack.simulator)).length === 0 && now;
      });
      assert.equal(refused.status, 200);
      assert.match(await refused.text(), /did not confirm the payment. Nothing was paid/);
    }
    await fetch(await until(() => atBank(page, 'succeeded').catch(() => undefined)));
    await until(async () => (await balance()) === 25);
  });

  it('are confirmed on a page that asks the processor once in two seconds, even while it is opened all the time', async () => {
    await saveAtCheckout(CAREFUL);
    const asked = bodyOf(await askFor('/v1/top-up', { amount: 20 }), 202, TopUpReply);
    const page = asked.sessionUrl ?? '';
    const opening = await askedDuring(stack.simulator, async () => {
      for (let i = 0; i < 40; i += 1) {
        const opened = await submit(page, {});
        assert.match(await opened.text(), /Go to your bank/);
      }
    });
    // It reads the payment and confirms it; the workflow may ask too.
    assert.ok(opening <= 3, `${opening} calls`);
    const reporting = await askedDuring(stack.simulator, async () => {
      for (let i = 0; i < 300; i += 1) {
        const shown = await fetch(`${page}&redirect_status=failed`);
        assert.match(await shown.text(), /did not confirm the payment/);
      }
    });
    assert.ok(reporting <= 3, `${reporting} calls`);
    await fetch(await until(() => atBank(page, 'succeeded').catch(() => undefined)));
    await until(async () => (await balance()) === 25);
  });

  it('that are charged automatically wait for their owner, who gets a mail', async () => {
    await saveAtCheckout(CAREFUL);
    await post('/v1/auto-top-up', { threshold: 10, amount: 20, ceiling: 100 });
    assert.equal((await charge(stack.api, account, { amount: 1 })).status, 201);
    const topUp = await until(async () => {
      const { topUps } = bodyOf(await get('/v1/top-up'), 200, TopUpsReply);
      return topUps.find(({ automatic, sessionUrl }) => automatic && sessionUrl !== undefined);
    });
    const { autoTopUp } = bodyOf(await get('/v1/balance'), 200, BalanceReply);
    assert.deepEqual(
      [autoTopUp?.status, autoTopUp?.reason],
      ['waiting', 'authentication_required'],
    );
    const mail = await until(async () => {
      const { rows } = await sql.query<{ body: string }>(
        'select body from console.mails where recipient = $1 and subject = $2',
        [account.email, 'Confirm a top-up at your bank'],
      );
      return rows[0];
    });
    assert.ok(mail.body.includes(topUp.sessionUrl ?? '?'));
    await fetch(await atBank(topUp.sessionUrl ?? '', 'succeeded'));
    await until(async () => (await balance()) === 24);
    const after = bodyOf(await get('/v1/balance'), 200, BalanceReply).autoTopUp;
    assert.deepEqual([after?.status, after?.reason], ['on', null]);
  });

  async function state() {
    const { autoTopUp } = bodyOf(await get('/v1/balance'), 200, BalanceReply);
    return [autoTopUp.status, autoTopUp.reason];
  }

  it('that are saved after a decline are charged at once, without the pause', async () => {
    const save = {
      'on a page without a payment': setUp,
      'at a checkout': payAndSave,
    };
    for (const [how, saveCard] of Object.entries(save)) {
      ({ account, headers } = await owner());
      await post('/v1/consent', { ceiling: 1_000, ...TERMS });
      await setUp(DECLINED);
      await post('/v1/auto-top-up', { threshold: 10, amount: 20, ceiling: 100 });
      assert.equal((await charge(stack.api, account, { amount: 1 })).status, 402);
      await until(async () => (await state())[0] === 'waiting');
      assert.deepEqual(await state(), ['waiting', 'card_declined'], how);
      assert.equal((await charge(stack.api, account, { amount: 1 })).status, 402);
      await saveCard('4242424242424242');
      await until(async () => (await balance()) >= 20);
      assert.deepEqual(await state(), ['on', null], how);
    }
  });
});
