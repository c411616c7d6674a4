/**
 * Lists of holds read few rows by each statement: open ones are found among the holds of the last day, rare
 * ones in steps.
 */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { listHolds, type HoldOwner } from '../../../src/store/holds/list-holds.ts';
import { capturable } from '../../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer, type Payer } from '../../support/payer.ts';
import { nodesOf, plansOf, type PlanNode } from '../query-plans.ts';

const OLD_HOLDS = 5_000;
const FIRST_STEP = 1_000;

describe('a list of holds', () => {
  let ledger: TestLedger;
  let client: Client;
  let payer: Payer;
  let owners: HoldOwner[];

  before(async () => {
    ledger = await openTestLedger();
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    payer = await newPayer(ledger.database);
    await payer.topUp(1_000_000);
    owners = [
      { kind: 'consumer', ...payer },
      { kind: 'developer', developerNumber: 1 },
    ];
    // Captured; the oldest one is released, and every tenth is a lease.
    await client.query(
      `insert into farebox.holds (amount_micros, held_micros, captured_micros, balance_micros, placed_at, expires_at, id,
         consumer_id, developer, ledger, state, tool)
       select 1, 0, 1, 1, at, at, uuidv7(at - now()), $1, 1, $2, case n when 1 then 2 else 1 end,
         case n % 10 when 0 then '' else 'search' end
       from generate_series(now() - interval '2 years', now() - interval '2 days', interval '2 years' / $3)
         with ordinality as held (at, n)`,
      [payer.consumerId, payer.ledger, OLD_HOLDS],
    );
    await client.query('vacuum analyze farebox.holds');
    // So few holds would be read as a whole.
    await client.query('set enable_seqscan = off');
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  it('does not read the holds of two years for the open ones', async () => {
    const open = await capturable(ledger.database, payer, 250_000);
    for (const owner of owners) {
      const list = (status: 'open' | undefined) =>
        listHolds(ledger.database, owner, status, { limit: 20 });
      assert.deepEqual(
        (await list('open')).map(({ id }) => id),
        [open],
      );
      assert.equal((await list(undefined)).length, 20);
      const plans = await plansOf(ledger.database, client, (connection) =>
        listHolds(connection, owner, 'open', { limit: 20 }),
      );
      const read = plans.map(holdsRead);
      assert.ok(
        read.reduce((sum, rows) => sum + rows, 0) < 50,
        `${owner.kind}: ${read.join(' + ')} holds were read`,
      );
    }
  });

  it('finds the only one of a status in steps', async () => {
    for (const owner of owners) {
      let found = 0;
      const plans = await plansOf(ledger.database, client, async (connection) => {
        const holds = await listHolds(connection, owner, 'released', {
          limit: 20,
        });
        found = holds.length;
      });
      assert.equal(found, 1);
      const read = plans.map(holdsRead);
      const [bound = 0, step = 0] = read;
      assert.ok(bound <= FIRST_STEP + 1 && step <= FIRST_STEP + 1, read.join(', '));
      assert.ok(Math.max(...read) <= 4 * FIRST_STEP + 1, `${owner.kind}: ${read.join(', ')}`);
    }
  });

  it('has each hold on one page, in order', async () => {
    for (const owner of owners) {
      const listed: string[] = [];
      for (;;) {
        const beforeId = listed.at(-1);
        const page = await listHolds(ledger.database, owner, 'captured', {
          limit: 700,
          beforeId,
        });
        listed.push(...page.map(({ id }) => id));
        if (page.length === 0) break;
      }
      const { rows } = await client.query<{ id: string }>(
        `select id from farebox.holds where state = 1 and tool <> '' order by id desc`,
      );
      assert.deepEqual(
        listed,
        rows.map(({ id }) => id),
      );
    }
  });

  it('has shorter pages where metadata is large', async () => {
    const metadata = JSON.stringify({ note: 'x'.repeat(10_000) });
    await client.query(`update farebox.holds set metadata = $1 where state = 1`, [metadata]);
    for (const owner of owners) {
      const list = (beforeId?: string) =>
        listHolds(ledger.database, owner, 'captured', { limit: 100, beforeId });
      const first = await list();
      assert.ok(first.length > 1 && first.length < 20, `${first.length} holds`);
      assert.equal(first.at(-1)?.hasNext, true);
      const second = await list(first.at(-1)?.id);
      const { rows } = await client.query<{ id: string }>(
        `select id from farebox.holds where state = 1 and tool <> '' order by id desc limit $1`,
        [first.length + second.length],
      );
      assert.deepEqual(
        [...first, ...second].map(({ id }) => id),
        rows.map(({ id }) => id),
      );
    }
  });
});

function holdsRead(plan: PlanNode): number {
  return nodesOf(plan)
    .filter((node) => node['Relation Name']?.startsWith('holds'))
    .map(
      (node) =>
        (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
    )
    .reduce((sum, rows) => sum + rows, 0);
}
