/** The waiting work that metrics and the console show to operators. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { readBacklog } from '../../../src/store/audit/backlog.ts';
import { credit } from '../../support/evidence.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { dispute, newPayer, processorId } from '../../support/payer.ts';

describe('the backlog', () => {
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

  it('counts an open dispute of a payment of last year, until it ends', async () => {
    const { database } = ledger;
    const disputed = async () =>
      (await readBacklog(database)).waiting.find(({ what }) => what === 'top_ups_disputed')?.count;
    const payer = await newPayer(database);
    const { rows } = await client.query<{ id: string }>(
      `update farebox.top_ups set id = uuidv7(interval '-300 days'), created_at = now() - interval '300 days'
       where id = $1 returning id`,
      [await payer.open(10_000_000)],
    );
    const [{ id } = { id: '' }] = rows;
    await credit(database, id);
    assert.equal(await disputed(), 0);
    const dp = processorId('dp');
    await payer.report(id, dispute(dp, 10_000_000));
    assert.equal(await payer.statusOf(id), 'disputed');
    assert.equal(await disputed(), 1);
    await payer.report(id, dispute(dp, 10_000_000, 'won'));
    assert.equal(await disputed(), 0);
  });
});
