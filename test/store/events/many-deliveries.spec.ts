/**
 * An endpoint with very many deliveries is listed, noticed when late, disabled and deleted by statements that
 * each end long before their timeout.
 */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import {
  hastenDeliveries,
  listDeliveries,
  listDueDeliveries,
  noteLateDeliveries,
  postTest,
} from '../../../src/store/events/deliveries.ts';
import {
  changeWebhookEndpoint,
  deleteWebhookEndpoint,
  makeWebhookEndpoint,
  type WebhookEndpoint,
} from '../../../src/store/events/webhook-endpoints.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer } from '../../support/payer.ts';
import { nodesOf, plansOf, rowsReadOf, type PlanNode } from '../query-plans.ts';

const WAITING = 45_000;
const ROWS_OF_STATEMENT_MAX = 20_000;

describe('an endpoint with very many waiting deliveries', () => {
  let ledger: TestLedger;
  let client: Client;
  let endpoint: WebhookEndpoint;

  before(async () => {
    ledger = await openTestLedger();
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    const { accountId } = await newPayer(ledger.database);
    const settings = { url: 'https://example.com/events', types: null, description: '' };
    const made = await makeWebhookEndpoint(ledger.database, accountId, 1, settings);
    assert.ok('endpoint' in made);
    ({ endpoint } = made);
    await client.query(
      `with events as (
         insert into farebox.events (account_id, type, data) select $1, 'webhook_endpoint.test', '{}'
         from generate_series(1, $3::int) returning id
       )
       insert into farebox.webhook_deliveries (endpoint_id, event_id) select $2, id from events`,
      [accountId, endpoint.id, WAITING],
    );
    await client.query(`
      create function farebox.limit_rows_of_test() returns trigger language plpgsql as $$ begin
        if (select count(*) from changed) > ${ROWS_OF_STATEMENT_MAX} then raise 'one statement changes too many rows'; end if;
        return null;
      end $$;
      create trigger limit_updates after update on farebox.webhook_deliveries
        referencing old table as changed for each statement execute function farebox.limit_rows_of_test();
      create trigger limit_deletes after delete on farebox.webhook_deliveries
        referencing old table as changed for each statement execute function farebox.limit_rows_of_test();
    `);
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  const waiting = async () =>
    (await listDeliveries(ledger.database, endpoint.id, 'waiting', { limit: WAITING })).length;

  it('finds the only one of a status in steps', async () => {
    await client.query(`
      update farebox.webhook_deliveries set status = 'failed', next_attempt_at = null
      where event_id = (select event_id from farebox.webhook_deliveries order by event_id limit 1)
    `);
    await client.query('analyze farebox.webhook_deliveries');
    let found = 0;
    const plans = await plansOf(ledger.database, client, async (connection) => {
      found = (await listDeliveries(connection, endpoint.id, 'failed', { limit: 20 })).length;
    });
    await client.query(`
      update farebox.webhook_deliveries set status = 'waiting', next_attempt_at = now() where status = 'failed'
    `);
    assert.equal(found, 1);
    const read = plans.map(deliveriesRead);
    assert.ok(Math.max(...read) < WAITING * 0.6, read.join(', '));
  });

  it('finds first attempts without reading the retries that are due', async () => {
    await client.query(`
      alter table farebox.webhook_deliveries disable trigger limit_updates;
      update farebox.webhook_deliveries set attempts = 1, attempted_at = now()
      where event_id <> (select event_id from farebox.webhook_deliveries order by event_id desc limit 1);
      alter table farebox.webhook_deliveries enable trigger limit_updates;
    `);
    await client.query('vacuum analyze farebox.webhook_deliveries');
    let attempts: readonly number[] = [];
    const plans = await plansOf(ledger.database, client, async (connection) => {
      const wanted = { limit: 8, retriesMax: 4, except: [] };
      const due = await listDueDeliveries(connection, endpoint.id, wanted);
      attempts = due.map((delivery) => delivery.attempts);
    });
    assert.deepEqual(
      attempts.toSorted((a, b) => a - b),
      [0, 1, 1, 1, 1],
    );
    const read = rowsReadOf('webhook_deliveries', plans);
    assert.ok(read < 50, `${read}`);
  });

  it('reads none that was hastened before when it hastens those that wait', async () => {
    const setDue = (inFuture: string, isHastened: boolean) =>
      client.query(
        `update farebox.webhook_deliveries set next_attempt_at = now() + $1::interval, is_hastened = $2`,
        [inFuture, isHastened],
      );
    await client.query('alter table farebox.webhook_deliveries disable trigger limit_updates');
    await setDue('1 hour', true);
    await client.query('vacuum analyze farebox.webhook_deliveries');
    let isAny = true;
    const plans = await plansOf(ledger.database, client, async (connection) => {
      isAny = await hastenDeliveries(connection, { endpointId: endpoint.id, url: endpoint.url });
    });
    await setDue('0', false);
    await client.query('alter table farebox.webhook_deliveries enable trigger limit_updates');
    assert.equal(isAny, false);
    const read = rowsReadOf('webhook_deliveries', plans);
    assert.ok(read < 10, `${read}`);
  });

  it('are noticed when they are late by the one that is due first', async () => {
    const other = await makeWebhookEndpoint(ledger.database, endpoint.accountId, 1, {
      url: 'https://example.org/events',
      types: null,
      description: '',
    });
    assert.ok('endpoint' in other);
    await postTest(ledger.database, other.endpoint, {});
    await client.query('delete from farebox.outbox');
    let noticed = 0;
    const plans = await plansOf(ledger.database, client, async (connection) => {
      noticed = await noteLateDeliveries(connection, 0);
    });
    assert.equal(noticed, 2);
    const read = plans.map(deliveriesRead);
    assert.ok(Math.max(...read) < 10, read.join(', '));
    assert.equal(await noteLateDeliveries(ledger.database, 0), 0);
    assert.equal(await deleteWebhookEndpoint(ledger.database, other.endpoint), true);
  });

  it('drops all of them, step by step, when it is disabled', async () => {
    assert.equal(await waiting(), WAITING);
    const unchanged = { url: undefined, types: undefined, description: undefined };
    const disabled = await changeWebhookEndpoint(ledger.database, endpoint, {
      ...unchanged,
      isEnabled: false,
    });
    assert.equal(disabled?.status, 'disabled');
    assert.equal(await waiting(), 0);
  });

  it('deletes all of them, step by step, when it is deleted', async () => {
    assert.equal(await deleteWebhookEndpoint(ledger.database, endpoint), true);
    const { rowCount } = await client.query('select from farebox.webhook_deliveries');
    assert.equal(rowCount, 0);
  });
});

function deliveriesRead(plan: PlanNode): number {
  return nodesOf(plan)
    .filter((node) => node['Relation Name'] === 'webhook_deliveries')
    .map(
      (node) =>
        (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
    )
    .reduce((sum, rows) => sum + rows, 0);
}
