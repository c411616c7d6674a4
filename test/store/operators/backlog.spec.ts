/** The waiting work that metrics and the console show to operators. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { readBacklog } from '../../../src/store/operators/backlog.ts';
import { listStuck } from '../../../src/store/operators/stuck.ts';
import { listWaiting } from '../../../src/store/operators/waiting.ts';
import { credit } from '../../support/evidence.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { dispute, newPayer, processorId } from '../../support/payer.ts';
import { nodesOf, plansOf } from '../query-plans.ts';

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

  it('lists the oldest of what it counts, by probes of indexes that hold only what waits', async () => {
    const { database } = ledger;
    const payer = await newPayer(database);
    const disputedId = await payer.topUp(10_000_000);
    await payer.report(disputedId, dispute(processorId('dp'), 3_000_000));
    const pending = [await payer.open(1_000_000), await payer.open(2_000_000)];
    await client.query(
      `insert into farebox.reversals (id, ledger, consumer_id, top_up_id, kind, status, amount_micros, processor_id)
       select uuidv7(), ledger, consumer_id, id, 'dispute', 'won', 1, 'won_' || n
       from farebox.top_ups, generate_series(1, 5000) as n where id = $1`,
      [disputedId],
    );
    await client.query(
      `insert into farebox.webhook_endpoints (id, account_id, url, secret_master, failing_since)
       select uuidv7(), $1, 'https://example.com/' || n, 1, case when n > 4997 then now() - n * interval '1 s' end
       from generate_series(1, 5000) as n`,
      [payer.accountId],
    );
    await client.query('analyze farebox.reversals, farebox.webhook_endpoints');
    const listed = async (limit: number) =>
      Object.groupBy(await listWaiting(database, limit), ({ what }) => what);
    const { top_ups_pending, top_ups_disputed, failing_endpoints } = await listed(2);
    assert.deepEqual(
      top_ups_pending?.map(({ subjectId }) => subjectId),
      pending,
    );
    assert.deepEqual(
      top_ups_disputed?.map(({ subjectId, amountMicros }) => [subjectId, amountMicros]),
      [[disputedId, 3_000_000]],
    );
    assert.deepEqual(
      failing_endpoints?.map(({ url }) => url),
      ['https://example.com/5000', 'https://example.com/4999'],
    );
    assert.equal((await listed(1))['top_ups_pending']?.length, 1);
    const plans = await plansOf(database, client, (connection) => listWaiting(connection, 20));
    const nodes = plans.flatMap(nodesOf);
    const read = nodes.filter((node) => node['Actual Loops'] > 0 && node['Relation Name']);
    for (const node of read) {
      assert.ok(node['Actual Rows'] <= 20, `${node['Relation Name']}: ${node['Actual Rows']}`);
      assert.ok((node['Rows Removed by Filter'] ?? 0) <= 20, node['Relation Name']);
    }
    const indexes = new Set(nodes.map((node) => node['Index Name']));
    for (const index of ['reversals_open', 'webhook_endpoints_failing']) {
      assert.ok(indexes.has(index), index);
    }
  });

  it('counts a checkout that cannot be opened as stuck after 15 minutes, and not once it is open', async () => {
    const { database } = ledger;
    const payer = await newPayer(database);
    const stuck = async () => {
      const { count } = (await readBacklog(database)).stuck;
      assert.equal((await listStuck(database, 100)).length, count);
      return count;
    };
    const age = (id: string, minutes: number) =>
      client.query(
        `update farebox.top_ups set created_at = now() - $2 * interval '1 minute' where id = $1`,
        [id, minutes],
      );
    const before = await stuck();
    const id = await payer.open(1_000_000);
    await age(id, 14);
    assert.equal(await stuck(), before);
    await age(id, 16);
    assert.equal(await stuck(), before + 1);
    const { stuck: found } = await readBacklog(database);
    assert.ok(found.ageSeconds >= 16 * 60);
    await client.query(
      `update farebox.top_ups set session_id = 'cs_' || id, session_url = 'https://example.com',
         session_expires_at = now() + interval '1 day'
       where id = $1`,
      [id],
    );
    assert.equal(await stuck(), before);
  });

  it('counts a notice that fails as stuck after 15 minutes, and not after many attempts alone', async () => {
    const { database } = ledger;
    const stuckAfter = async (minutes: number, attempts: number) => {
      await client.query('delete from farebox.outbox');
      await client.query(
        `insert into farebox.outbox (topic, subject_id, attempts, created_at)
         values ('grant', uuidv7(), $2, now() - $1 * interval '1 minute')`,
        [minutes, attempts],
      );
      const listed = (await listStuck(database, 100)).filter(({ kind }) => kind === 'notice');
      return [listed.length, (await readBacklog(database)).stuck.count - stuckOthers];
    };
    await client.query('delete from farebox.outbox');
    const stuckOthers = (await readBacklog(database)).stuck.count;
    assert.deepEqual(await stuckAfter(14, 500), [0, 0]);
    assert.deepEqual(await stuckAfter(16, 500), [1, 1]);
    assert.deepEqual(await stuckAfter(16, 2), [0, 0]);
  });
});
