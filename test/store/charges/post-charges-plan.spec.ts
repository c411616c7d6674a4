/** How Postgres runs the charge statement: the cost of a charge must not grow with the number of charges. */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { Client } from 'pg';
import { DAY_MS } from '../../../src/domain/durations.ts';
import { uuidTimeMs } from '../../../src/domain/ids.ts';
import {
  postCharges,
  postFittingCharges,
  type ChargeDraft,
} from '../../../src/store/charges/post-charges.ts';
import type { Database } from '../../../src/store/database.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import {
  newConsumers,
  newDraft,
  newKey,
  post,
  RECEIPT_KEY,
  replayWindow,
  type Consumer,
} from '../../support/charge-drafts.ts';
import { startExplaining, type Explaining } from '../nested-plans.ts';
import { nodesOf, type PlanNode } from '../query-plans.ts';

function isReadOfCharges(node: PlanNode): boolean {
  return (node['Relation Name'] ?? '').startsWith('charges') && node['Node Type'] !== 'ModifyTable';
}

describe('the charge statements: their plans', () => {
  let ledger: TestLedger;
  let database: Database;
  let client: Client;

  before(async () => {
    ledger = await openTestLedger(1);
    ({ database } = ledger);
    for (let months = 12; months >= 0; months -= 4) {
      await ensureChargePartitions(ledger.url, Date.now() - months * 30 * DAY_MS);
    }
    client = new Client({ connectionString: ledger.url });
    await client.connect();
  });

  after(async () => {
    await client.end();
    await ledger.drop();
  });

  it('finds a key without reading the consumer’s other charges, whenever its plan was made', async () => {
    const [consumer] = (await newConsumers(client, 1, 1_000_000)) as [Consumer];
    const keyed = () => ({
      ...newDraft(consumer, 1),
      ...newKey(),
    });
    const made = keyed();
    const asked = () => [{ ...made, id: randomUUIDv7() }, keyed()];
    const early = await startExplaining(ledger.url, database);
    const late = await startExplaining(ledger.url, database);
    try {
      await plansOf(early, [keyed()]);
      await post(database, [made]);
      for (let n = 0; n < 10; n += 1) {
        await post(database, Array.from({ length: 500 }, keyed));
      }
      assertProbes(await plansOf(early, asked()));
      await client.query('analyze farebox.charges');
      assertProbes(await plansOf(late, asked()));
    } finally {
      await early.stop();
      await late.stop();
    }
  });
});

/** Both functions on the same drafts. */
function plansOf(session: Explaining, drafts: readonly ChargeDraft[]): Promise<PlanNode[]> {
  return session.plansOf(async (connection) => {
    await postFittingCharges(connection, drafts, RECEIPT_KEY, replayWindow());
    await postCharges(connection, drafts, RECEIPT_KEY, replayWindow());
  });
}

/** Every read of charges goes through the hash index of a relevant month, and finds at most one. */
function assertProbes(plans: readonly PlanNode[]): void {
  const reads = plans.flatMap(nodesOf).filter(isReadOfCharges);
  // One read for each partition, in each of the two functions.
  assert.ok(reads.length >= 2);
  const months = Object.values(replayWindow()).map(
    (id) => `charges_${new Date(uuidTimeMs(id)).toISOString().slice(0, 7).replace('-', '_')}`,
  );
  for (const read of reads) {
    assert.match(read['Index Name'] ?? read['Node Type'], /idempotency_hash_idx$/);
    assert.equal(read['Rows Removed by Filter'] ?? 0, 0);
    assert.ok(read['Actual Rows'] <= 1);
    assert.ok(months.includes(read['Relation Name'] ?? ''), read['Relation Name']);
  }
}
