/** Every change that has an event writes exactly one, in its transaction and in the documented form. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { EVENT_TYPES, type EventType } from '../../../src/domain/events.ts';
import { wireId } from '../../../src/domain/ids.ts';
import { EVENT_DATA } from '../../../src/schemas/events.ts';
import {
  expireKey,
  insertKeys,
  newKey,
  newKeyRow,
  revokeKey,
} from '../../../src/store/accounts/api-keys.ts';
import { makeBudget } from '../../../src/store/budgets/change-budgets.ts';
import { makeSpendKey } from '../../../src/store/budgets/spend-keys.ts';
import { refundCharge } from '../../../src/store/charges/refund-charge.ts';
import type { Database } from '../../../src/store/database.ts';
import { changeTool, registerTool } from '../../../src/store/tools/tools.ts';
import { noteLateDeliveries } from '../../../src/store/events/deliveries.ts';
import { postEvent } from '../../../src/store/events/events.ts';
import {
  deleteWebhookEndpoint,
  makeWebhookEndpoint,
} from '../../../src/store/events/webhook-endpoints.ts';
import { expireHolds } from '../../../src/store/holds/expire-holds.ts';
import { requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import { claimTopUp } from '../../../src/store/top-ups/claim-top-up.ts';
import { planTax, recordTaxCalculation } from '../../../src/store/top-ups/plan-payment.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { UNLIMITED } from '../../support/budget-settings.ts';
import { newDraft, post } from '../../support/charge-drafts.ts';
import { assertShape } from '../../support/contract.ts';
import { credit, expire, fail } from '../../support/evidence.ts';
import { capturable } from '../../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { dispute, newPayer, processorId, refund, type Payer } from '../../support/payer.ts';

interface Event {
  readonly type: EventType;
  readonly data: Record<string, unknown>;
}

const RESEARCH = { ...UNLIMITED, name: 'research' };

describe('events', () => {
  let ledger: TestLedger;
  let database: Database;
  let client: Client;
  /** The first account of the ledger, so also the developer of charges and holds. */
  let payer: Payer;
  const seen = new Set<string>();

  before(async () => {
    ledger = await openTestLedger();
    ({ database } = ledger);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    payer = await newPayer(database);
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });
  beforeEach(() => client.query('delete from farebox.events'));

  /** What the account was told since the test began; the data has the documented form. */
  async function told(): Promise<Event[]> {
    const { rows } = await client.query<Event>(
      'select type, data from farebox.events where account_id = $1 order by id',
      [payer.accountId],
    );
    for (const { type, data } of rows) {
      assertShape(data, EVENT_DATA[type]);
      seen.add(type);
    }
    return rows;
  }
  const types = async () => (await told()).map(({ type }) => type);

  it('tell each state of a top-up, and nothing of one that no workflow took up', async () => {
    const id = await payer.open(10_050_000);
    assert.deepEqual(await types(), []);
    await claimTopUp(database, id);
    await claimTopUp(database, id);
    await fail(database, id, { code: 'card_declined', message: 'Your card was declined.' }, 1_000);
    await expire(database, id);
    await credit(database, id);
    await credit(database, id);
    const [pending, failed, completed, ...more] = await told();
    assert.deepEqual(
      [pending?.type, failed?.type, completed?.type],
      ['top_up.pending', 'top_up.failed', 'top_up.completed'],
    );
    assert.deepEqual(more, []);
    const { createdAt, completedAt, ...data } = completed?.data ?? {};
    assert.ok(typeof createdAt === 'string' && typeof completedAt === 'string');
    assert.ok(createdAt <= completedAt && new Date(completedAt).toISOString() === completedAt);
    assert.deepEqual(data, {
      id: wireId('topUp', id),
      amount: 10.05,
      status: 'completed',
      method: 'checkout',
      automatic: false,
      failure: null,
    });
    assert.deepEqual(failed?.data['failure'], {
      code: 'card_declined',
      message: 'Your card was declined.',
    });
    await expire(database, await payer.open(5_000_000));
    assert.equal((await types()).at(-1), 'top_up.expired');
  });

  it('tell the tax of a top-up where tax is added, once it is known', async () => {
    const paid = await payer.open(20_000_000);
    await planTax(database, paid, true);
    await claimTopUp(database, paid);
    await credit(database, paid, asMicros(1_780_000));
    const declined = await payer.open(20_000_000);
    await planTax(database, declined, true);
    await recordTaxCalculation(database, declined, {
      calculationId: 'taxcalc_1',
      micros: asMicros(1_780_000),
    });
    await fail(database, declined, { code: 'card_declined', message: '' }, 1_000);
    assert.deepEqual(
      (await told()).map(({ type, data }) => [type, data['amount'], data['tax']]),
      [
        ['top_up.pending', 20, null],
        ['top_up.completed', 20, 1.78],
        ['top_up.failed', 20, 1.78],
      ],
    );
  });

  it('tell each state of refunds and disputes, and what they make of the top-up', async () => {
    const id = await payer.topUp(10_000_000);
    const other = await payer.topUp(10_000_000);
    await client.query('delete from farebox.events');
    const requested = await requestRefund(database, id, asMicros(2_000_000));
    assert.ok(requested.kind === 'requested');
    const re = processorId('re');
    await payer.report(id, refund(re, 2_000_000, 'made', requested.refundId));
    await payer.report(id, refund(re, 2_000_000, 'failed', requested.refundId));
    const dp = processorId('dp');
    await payer.report(id, dispute(dp, 10_000_000));
    await payer.report(id, dispute(dp, 10_000_000));
    await payer.report(id, dispute(dp, 10_000_000, 'won'));
    const warning = { kind: 'warning', processorId: processorId('issfr') } as const;
    const warned = { ...warning, grossMicros: asMicros(1_000_000) };
    await payer.report(other, { ...warned, status: 'open' });
    await payer.report(other, { ...warned, status: 'won' });
    await payer.report(other, dispute(processorId('dp'), 10_000_000, 'lost'));
    await payer.report(await payer.topUp(5_000_000), refund(processorId('re'), 5_000_000));
    const events = await told();
    assert.deepEqual(
      events.map(({ type }) => type),
      [
        'refund.requested',
        'top_up.partially_refunded',
        'refund.made',
        'refund.failed',
        'top_up.completed',
        'dispute.open',
        'top_up.disputed',
        'dispute.won',
        'top_up.completed',
        'warning.open',
        'top_up.disputed',
        'warning.won',
        'top_up.completed',
        'dispute.lost',
        'top_up.charged_back',
        'top_up.completed',
        'refund.made',
        'top_up.refunded',
      ],
    );
    const { createdAt: _, ...data } = events[0]?.data ?? {};
    assert.deepEqual(data, {
      id: wireId('topUpRefund', requested.refundId),
      topUpId: wireId('topUp', id),
      amount: 2,
      status: 'requested',
    });
  });

  it('tell the consumer of a refunded charge, and the developer of an expired hold', async () => {
    await payer.topUp(5_000_000);
    const draft = newDraft(payer, 1_000_001);
    await post(database, [draft]);
    const held = await capturable(database, payer, 250_000);
    const released = await capturable(database, payer, 250_000);
    await client.query('delete from farebox.events');
    const request = {
      developerNumber: 1,
      chargeId: draft.id,
      askedMicros: asMicros(1),
      idempotencyKey: 'once',
    };
    await refundCharge(database, request);
    assert.equal((await refundCharge(database, request)).kind, 'known');
    await client.query(`update farebox.holds set expires_at = now() where id = $1`, [held]);
    await client.query('update farebox.hold_expiries set due_at = now()');
    await expireHolds(database);
    await expireHolds(database);
    const [refunded, expired, ...more] = await told();
    assert.deepEqual(more, []);
    assert.equal(refunded?.type, 'charge.refunded');
    assert.equal(refunded.data['chargeId'], wireId('charge', draft.id));
    assert.equal(refunded.data['amount'], 0.000001);
    assert.equal(expired?.type, 'hold.expired');
    assert.equal(expired.data['id'], wireId('hold', held));
    assert.equal(expired.data['amount'], 0.25);
    assert.notEqual(expired.data['id'], wireId('hold', released));
  });

  it('of one sweep of expired holds leave one notice for each endpoint', async () => {
    const settings = { url: 'https://example.com/events', types: null, description: '' };
    const made = await makeWebhookEndpoint(database, payer.accountId, 1, settings);
    assert.ok('endpoint' in made);
    await payer.topUp(5_000_000);
    const held: string[] = [];
    for (let n = 0; n < 3; n += 1) held.push(await capturable(database, payer, 250_000));
    await client.query('delete from farebox.events');
    await client.query('delete from farebox.webhook_deliveries');
    await client.query('delete from farebox.outbox');
    await client.query('update farebox.holds set expires_at = now() where id = any ($1)', [held]);
    await client.query('update farebox.hold_expiries set due_at = now()');
    await expireHolds(database);
    const { rows } = await client.query<{ topic: string; subject: string }>(
      'select topic, subject_id as subject from farebox.outbox',
    );
    const deliveries = await client.query('select from farebox.webhook_deliveries');
    await deleteWebhookEndpoint(database, made.endpoint);
    const ids = (await told()).map(({ data }) => data['id']);
    assert.equal(ids.length, 3);
    assert.deepEqual(new Set(ids), new Set(held.map((id) => wireId('hold', id))));
    assert.equal(deliveries.rowCount, 3);
    assert.deepEqual(rows, [{ topic: 'webhook_endpoint', subject: made.endpoint.id }]);
  });

  it('tell keys as they are created, rolled and revoked, and never the key itself', async () => {
    const key = newKey('fare', 'developer', 'live');
    const [id = ''] = await insertKeys(database, [newKeyRow(key, 'developer', payer.accountId)]);
    await expireKey(database, { id }, 3_600);
    await revokeKey(database, { id });
    await revokeKey(database, { id });
    const view = { ...payer, root: null };
    const budget = await makeBudget(database, view, null, RESEARCH);
    assert.ok(budget.kind === 'made');
    const spendKey = await makeSpendKey(database, payer, budget.budget.number, {
      hash: newKeyRow(newKey('fare', 'consumer', 'live'), 'consumer', payer.accountId).hash,
      lastFour: 'x9Qz',
      accountId: payer.accountId,
      name: 'agent',
      expiresAt: null,
    });
    assert.ok(spendKey.kind === 'made');
    const events = await told();
    assert.deepEqual(
      events.map(({ type, data }) => [type, data['id'], data['budgetId']]),
      [
        ['key.created', wireId('key', id), null],
        ['key.rolled', wireId('key', id), null],
        ['key.revoked', wireId('key', id), null],
        ['key.created', wireId('key', spendKey.id), wireId('budget', budget.budget.id)],
      ],
    );
    assert.ok(!JSON.stringify(events).includes(key));
  });

  async function developerId(): Promise<string> {
    const { rows } = await client.query<{ id: string }>(
      'select developer_id as id from farebox.accounts where id = $1',
      [payer.accountId],
    );
    return rows[0]?.id ?? '';
  }

  it('tell a developer of a changed price', async () => {
    const developer = await developerId();
    const name = `tool ${randomUUID()}`;
    const tool = await registerTool(database, developer, {
      name,
      description: '',
      priceMicros: asMicros(50_000),
    });
    assert.ok(typeof tool === 'object');
    const changes = { description: undefined, isArchived: undefined, card: undefined };
    await changeTool(database, developer, tool.id, { ...changes, priceMicros: asMicros(70_000) });
    await changeTool(database, developer, tool.id, { ...changes, priceMicros: asMicros(70_000) });
    assert.deepEqual(await told(), [
      {
        type: 'tool.price_changed',
        data: { id: wireId('tool', tool.id), name, price: 0.07, previousPrice: 0.05 },
      },
    ]);
  });

  it('have a later time for the later change, whichever transaction began first', async () => {
    const tool = await registerTool(database, await developerId(), {
      name: `tool ${randomUUID()}`,
      description: '',
      priceMicros: asMicros(50_000),
    });
    assert.ok(typeof tool === 'object');
    await client.query('begin');
    // The time of this transaction is that of its first statement.
    await client.query('select now()');
    const changes = {
      description: undefined,
      isArchived: undefined,
      card: undefined,
      priceMicros: asMicros(70_000),
    };
    await changeTool(database, await developerId(), tool.id, changes);
    await client.query('update farebox.tools set price_micros = 90000 where id = $1', [tool.id]);
    await client.query('commit');
    const { rows } = await client.query<{ price: number }>(
      `select (data ->> 'price')::float8 as price from farebox.events
       where account_id = $1 and type = 'tool.price_changed' order by created_at`,
      [payer.accountId],
    );
    assert.deepEqual(rows, [{ price: 0.07 }, { price: 0.09 }]);
  });

  it('are written in the transaction of the caller, and not when it fails', async () => {
    const id = wireId('tool', payer.consumerId);
    const data = { id, name: 'search', price: 0.05, previousPrice: null };
    const failing = database.transaction(async (tx) => {
      await postEvent(tx, payer.accountId, 'tool.price_changed', data);
      throw new Error('rolled back');
    });
    await assert.rejects(failing, /rolled back/);
    assert.deepEqual(await told(), []);
    await postEvent(database, payer.accountId, 'tool.price_changed', data);
    assert.deepEqual(await told(), [{ type: 'tool.price_changed', data }]);
  });

  it('cover every type but those that charges and leases write', () => {
    const elsewhere = [
      'balance.low',
      'balance.exhausted',
      'budget.threshold_reached',
      // test/http/leases/expired-leases.spec.ts
      'lease.expired',
    ];
    assert.deepEqual(
      EVENT_TYPES.filter((type) => !seen.has(type) && !type.startsWith('webhook_endpoint.')),
      elsewhere,
    );
  });
});

describe('a delivery that is late', () => {
  it('leaves one notice for its workflow, as often as it is noticed', async () => {
    const ledger = await openTestLedger();
    const client = new Client({ connectionString: ledger.url });
    try {
      await client.connect();
      const { accountId } = await newPayer(ledger.database);
      const { rows } = await client.query<{ endpoint: string }>(
        `with endpoint as (
           insert into farebox.webhook_endpoints (id, account_id, url, secret_master)
           values (uuidv7(), $1, 'https://example.com', 1) returning id
         ), event as (
           insert into farebox.events (id, account_id, type, data)
           values (uuidv7(), $1, 'webhook_endpoint.test', '{}') returning id
         )
         insert into farebox.webhook_deliveries (endpoint_id, event_id, next_attempt_at)
         select endpoint.id, event.id, now() - interval '1 hour' from endpoint, event
         returning endpoint_id as endpoint`,
        [accountId],
      );
      assert.equal(await noteLateDeliveries(ledger.database, 60_000), 1);
      assert.equal(await noteLateDeliveries(ledger.database, 60_000), 0);
      const notices = await client.query(
        `select from farebox.outbox where topic = 'webhook_endpoint' and subject_id = $1`,
        [rows[0]?.endpoint],
      );
      assert.equal(notices.rowCount, 1);
    } finally {
      await client.end();
      await ledger.drop();
    }
  });
});
