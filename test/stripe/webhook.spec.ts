/** Specification section 6: what the processor's webhook accepts, and what it stores. */
import assert from 'node:assert/strict';
import { Type } from 'typebox';
import { createStripe } from '../../src/stripe/calls.ts';
import { recordWebhook, type WebhookDeps } from '../../src/stripe/webhook.ts';
import { row, sql, type Database } from '../../src/store/database.ts';
import { findAutoTopUp } from '../../src/store/top-ups/auto-top-ups.ts';
import { recordProcessorCustomer } from '../../src/store/top-ups/processor-customers.ts';
import { recordPaymentIntent } from '../../src/store/top-ups/plan-payment.ts';
import { newPayer } from '../support/payer.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { credit } from '../support/evidence.ts';

const eventRow = row(
  Type.Object({
    id: Type.String(),
    type: Type.String(),
    objectId: Type.Union([Type.String(), Type.Null()]),
    topUpId: Type.Union([Type.String(), Type.Null()]),
    topics: Type.Array(Type.String()),
  }),
);

function event(id: string, type: string, object: object): string {
  return JSON.stringify({ id, object: 'event', type, data: { object } });
}

function failedAttempt(id: string): string {
  const object = { id: 'pi_tried', object: 'payment_intent' };
  return event(id, 'payment_intent.payment_failed', object);
}

describe('the webhook of the payment processor', () => {
  let ledger: TestLedger;
  let database: Database;
  let deps: WebhookDeps;

  before(async () => {
    ledger = await openTestLedger(4);
    ({ database } = ledger);
    deps = {
      database,
      stripe: createStripe({
        secretKey: 'sk_test_x',
        apiBase: undefined,
        webhookSecrets: [],
        timeoutMs: 10_000,
        stepsPerSecond: 10,
        tax: undefined,
      }),
      webhookSecrets: ['whsec_new', 'whsec_old'],
      isLive: false,
    };
  });

  after(async () => {
    await ledger.drop();
  });

  it('stores an event once, though it is sent repeatedly', async () => {
    const body = event('evt_1', 'payment_intent.succeeded', {
      id: 'pi_1',
      object: 'payment_intent',
    });
    for (let n = 0; n < 3; n += 1) assert.deepEqual(await post(body), { kind: 'stored' });
    assert.deepEqual(await find('evt_1'), {
      id: 'evt_1',
      type: 'payment_intent.succeeded',
      objectId: 'pi_1',
      topUpId: null,
      topics: [],
    });
  });

  it('accepts either secret during a rotation', async () => {
    const body = event('evt_2', 'customer.created', { id: 'cus_1' });
    assert.deepEqual(await post(body, { secret: 'whsec_old' }), { kind: 'stored' });
  });

  it('stores unknown types and top-ups', async () => {
    await post(event('evt_3', 'something.new', { nothing: 'here' }));
    const stranger = { metadata: { top_up_id: 'tu_01a1fd3e11307735a9c9eeaa940085c9' } };
    await post(event('evt_4', 'checkout.session.completed', stranger));
    assert.deepEqual((await find('evt_3'))?.topics, []);
    assert.deepEqual((await find('evt_4'))?.topics, []);
  });

  it('stores nothing about the customer', async () => {
    await post(
      event('evt_5', 'checkout.session.completed', {
        id: 'cs_1',
        customer_details: { email: 'someone@example.com' },
      }),
    );
    const stored = await database.oneFirst(sql.type(row(Type.Object({ text: Type.String() })))`
      select to_jsonb(e)::text as text from farebox.processor_events e where id = 'evt_5'
    `);
    assert.doesNotMatch(stored, /someone@example\.com/);
  });

  const forgeries: readonly [string, (body: string) => Promise<unknown>][] = [
    ['signed with another secret', (body) => post(body, { secret: 'whsec_wrong' })],
    ['without a signature', (body) => recordWebhook(deps, Buffer.from(body), undefined)],
    ['with nonsense for a signature', (body) => recordWebhook(deps, Buffer.from(body), 't=1,v1=0')],
    ['changed after it was signed', (body) => post(body, { sent: body.replace('evt_', 'evu_') })],
    ['signed more than five minutes ago', (body) => post(body, { ageSeconds: 330 })],
  ];
  for (const [what, attempt] of forgeries) {
    it(`refuses an event ${what}`, async () => {
      const body = event('evt_forged', 'checkout.session.completed', { id: 'cs_1' });
      assert.deepEqual(await attempt(body), { kind: 'invalid_signature' });
      assert.equal(await find('evt_forged'), null);
    });
  }

  const noEvents: Readonly<Record<string, string>> = {
    'that is no JSON': '{"id": "evt_none"',
    'that begins with a byte order mark': `\uFEFF${event('evt_none', 'a.type', {})}`,
    'that is null': 'null',
    'that is a list': '[]',
    'without an id': '{"type":"payment_intent.succeeded","data":{"object":{}}}',
    'with an id that is no text': '{"id":1,"type":"payment_intent.succeeded"}',
    'with an id that no database takes': '{"id":"evt_\\u0000","type":"payment_intent.succeeded"}',
    'with an id of half a character': '{"id":"evt_\\ud800","type":"payment_intent.succeeded"}',
    'with an endless id': JSON.stringify({ id: 'e'.repeat(256), type: 'a.type' }),
    'without a type': '{"id":"evt_none","data":{"object":{}}}',
  };
  for (const [what, body] of Object.entries(noEvents)) {
    it(`refuses a body signed ${what}`, async () => {
      assert.deepEqual(await post(body), { kind: 'invalid_event' });
    });
  }

  const odd: Readonly<Record<string, object>> = {
    'without data': {},
    'with null for data': { data: null },
    'with a text for an object': { data: { object: 'cs_1' } },
    'with a list for metadata': { data: { object: { id: 'cs_1', metadata: ['top_up_id'] } } },
    'with an id that no database takes': {
      data: { object: { id: 'cs_\0', payment_intent: '\0' } },
    },
    'of the thin kind': { object: 'v2.core.event', related_object: { id: 'pi_1' } },
  };
  for (const [what, members] of Object.entries(odd)) {
    it(`stores an event ${what}, and notifies nobody`, async () => {
      const id = `evt_odd ${what}`;
      const type = 'checkout.session.completed';
      assert.deepEqual(await post(JSON.stringify({ id, type, ...members })), { kind: 'stored' });
      assert.deepEqual((await find(id))?.topics, []);
    });
  }

  it('ends the pause after a decline when a card is saved by a customer of ours', async () => {
    const payer = await newPayer(database);
    await recordProcessorCustomer(database, payer.accountId, 'cus_ours');
    await database.query(sql.typeAlias('nothing')`
      insert into farebox.auto_top_ups (ledger, consumer_id, threshold_micros, amount_micros, ceiling_micros,
        status, reason, declines, not_before)
      values (${payer.ledger}, ${payer.consumerId}, 1, 1, 1, 'waiting', 'card_declined', 1, 'infinity')
    `);
    const state = async () => (await findAutoTopUp(database, payer))?.status;
    const card = { id: 'pm_1', object: 'payment_method', type: 'card', customer: 'cus_ours' };
    const saved = (id: string, change: object = {}, members: object = {}) => {
      const object = { ...card, ...change };
      const attached = { id, type: 'payment_method.attached', data: { object } };
      return JSON.stringify({ ...attached, ...members });
    };
    for (const other of [
      saved('evt_card_1', { customer: 'cus_other' }),
      saved('evt_card_2', { customer: null }),
      saved('evt_card_3', { type: 'us_bank_account' }),
      saved('evt_card_4', {}, { account: 'acct_connected' }),
      saved('evt_card_5', {}, { livemode: true }),
      saved('evt_card_6', {}, { type: 'payment_method.updated' }),
    ]) {
      assert.deepEqual(await post(other), { kind: 'stored' });
      assert.equal(await state(), 'waiting', other);
    }
    assert.deepEqual(await post(saved('evt_card_7', { customer: { id: 'cus_ours' } })), {
      kind: 'stored',
    });
    assert.equal(await state(), 'on');
    assert.equal((await find('evt_card_7'))?.objectId, 'pm_1');
  });

  it('refuses a body that is not UTF-8, with any signature', async () => {
    const good = event('evt_bytes', 'a.type', { name: '\uFFFD' });
    const bytes = Buffer.from(good.replace('\uFFFD', '\u00FF'), 'latin1');
    const payload = good;
    const signature = deps.stripe.webhooks.generateTestHeaderString({
      payload,
      secret: 'whsec_new',
    });
    assert.deepEqual(await recordWebhook(deps, bytes, signature), { kind: 'invalid_signature' });
  });

  it('assigns a refund or dispute by its payment, and hands it over long after the credit', async () => {
    const payer = await newPayer(database);
    const topUpId = await payer.open(10_000_000);
    await recordPaymentIntent(database, topUpId, 'pi_ours');
    await credit(database, topUpId);
    await database.query(sql.typeAlias('nothing')`delete from farebox.outbox`);
    const refunds = ['charge.refunded', 'refund.updated', 'refund.created', 'refund.failed'];
    const disputes = ['created', 'updated', 'funds_withdrawn', 'funds_reinstated', 'closed'];
    for (const type of [...refunds, ...disputes.map((what) => `charge.dispute.${what}`)]) {
      const object = { id: 'any_1', payment_intent: 'pi_ours' };
      for (let times = 0; times < 2; times += 1) {
        await post(event(`evt_ours ${type}`, type, object));
      }
      await post(event(`evt_other ${type}`, type, { ...object, payment_intent: 'pi_other' }));
      const ours = await find(`evt_ours ${type}`);
      assert.equal(ours?.topUpId, topUpId, type);
      assert.deepEqual(ours.topics, ['reversal_reported'], type);
      await database.query(sql.typeAlias('nothing')`delete from farebox.outbox`);
      const other = await find(`evt_other ${type}`);
      assert.deepEqual([other?.topUpId, other?.topics], [null, []], type);
    }
  });

  it('hands over a failed attempt only while the bank wants the cardholder to confirm the payment', async () => {
    const payer = await newPayer(database);
    const topUpId = await payer.open(10_000_000);
    await recordPaymentIntent(database, topUpId, 'pi_tried');
    const change = (assignment: ReturnType<typeof sql.fragment>) =>
      database.query(sql.typeAlias('nothing')`
        with told as (delete from farebox.outbox)
        update farebox.top_ups set ${assignment} where id = ${topUpId}
      `);
    await change(sql.fragment`method = 'direct'`);
    await post(failedAttempt('evt_failed_1'));
    assert.deepEqual((await find('evt_failed_1'))?.topics, []);
    await change(sql.fragment`authentication_asked_at = now()`);
    await post(failedAttempt('evt_failed_2'));
    assert.deepEqual((await find('evt_failed_2'))?.topics, ['payment_reported']);
    await change(sql.fragment`status = 'failed'`);
    await post(failedAttempt('evt_failed_3'));
    assert.deepEqual((await find('evt_failed_3'))?.topics, []);
  });

  function post(body: string, { secret = 'whsec_new', sent = body, ageSeconds = 0 } = {}) {
    const signature = deps.stripe.webhooks.generateTestHeaderString({
      payload: body,
      secret,
      timestamp: Math.floor(Date.now() / 1000) - ageSeconds,
    });
    return recordWebhook(deps, Buffer.from(sent), signature);
  }

  function find(id: string) {
    return database.maybeOne(sql.type(eventRow)`
      select id, type, object_id as "objectId", top_up_id as "topUpId",
        array(select topic from farebox.outbox where subject_id = top_up_id) as topics
      from farebox.processor_events where id = ${id}
    `);
  }
});
