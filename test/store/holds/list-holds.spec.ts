/** Open holds are found among the holds of the last day: the thousands of earlier months are not read. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { listHolds, type HoldOwner } from '../../../src/store/holds/list-holds.ts';
import { capturable } from '../../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { newPayer } from '../../support/payer.ts';
import { nodesOf, plansOf } from '../query-plans.ts';

const OLD_HOLDS = 2_000;

describe('a list of open holds', () => {
  let ledger: TestLedger;
  let client: Client;

  before(async () => {
    ledger = await openTestLedger();
    client = new Client({ connectionString: ledger.url });
    await client.connect();
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  it('does not read the holds of two years', async () => {
    const payer = await newPayer(ledger.database);
    await payer.topUp(1_000_000);
    const open = await capturable(ledger.database, payer, 250_000);
    await client.query(
      `insert into farebox.holds (amount_micros, held_micros, captured_micros, balance_micros, placed_at, expires_at, id,
         consumer_id, developer, ledger, state, tool)
       select 1, 0, 1, 1, at, at, uuidv7(at - now()), $1, 1, $2, 1, 'search'
       from generate_series(now() - interval '2 years', now() - interval '2 days', interval '2 years' / $3) at`,
      [payer.consumerId, payer.ledger, OLD_HOLDS],
    );
    await client.query('analyze farebox.holds');
    const owners: HoldOwner[] = [
      { kind: 'consumer', ...payer },
      { kind: 'developer', developerNumber: 1 },
    ];
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
      const read = plans
        .flatMap(nodesOf)
        .filter((node) => node['Relation Name']?.startsWith('holds'))
        .map(
          (node) =>
            (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
        );
      assert.ok(
        read.reduce((sum, rows) => sum + rows, 0) < 50,
        `${owner.kind}: ${read.join(' + ')} holds were read`,
      );
    }
  });
});
