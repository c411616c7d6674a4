/** How Postgres runs the charge statement: the cost of a charge must not grow with the number of charges. */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { Client } from 'pg';
import { uuidTimeMs } from '../../../src/domain/ids.ts';
import type { ChargeDraft } from '../../../src/store/charges/post-charges.ts';
import type { Database } from '../../../src/store/database.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import { asSuperuser } from '../../support/stack.ts';
import {
  newConsumers,
  newDraft,
  newKey,
  post,
  replayWindow,
  type Consumer,
} from '../../support/charge-drafts.ts';
import { nodesOf, type PlanNode } from '../query-plans.ts';

const DAY_MS = 86_400_000;

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
    // One consumer in two groups, which the batcher never sends: the reads are the same.
    const asked = () => [{ ...made, id: randomUUIDv7() }, keyed()];
    const [early, late] = [await explainingClient(), await explainingClient()];
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
      await early.end();
      await late.end();
    }
  });

  async function explainingClient(): Promise<Client> {
    const explaining = new Client({ connectionString: asSuperuser(ledger.url) });
    await explaining.connect();
    await explaining.query(`
      load 'auto_explain';
      set auto_explain.log_min_duration = 0;
      set auto_explain.log_nested_statements = on;
      set auto_explain.log_analyze = on;
      set auto_explain.log_format = json;
      set client_min_messages = log;
    `);
    return explaining;
  }
});

function int64(hex: string | undefined): string {
  return BigInt.asIntN(64, BigInt(`0x${hex}`)).toString();
}

/** The statements inside both functions as they ran, from auto_explain. */
async function plansOf(explaining: Client, drafts: readonly ChargeDraft[]): Promise<PlanNode[]> {
  const plans: PlanNode[] = [];
  const onNotice = ({ message }: { message: string | undefined }) => {
    const json = /plan:\n([^]*)$/.exec(message ?? '')?.[1];
    if (json !== undefined) plans.push((JSON.parse(json) as { Plan: PlanNode }).Plan);
  };
  explaining.on('notice', onNotice);
  const column = (name: keyof ChargeDraft) => drafts.map((draft) => draft[name]);
  const charges = ['id', 'developerNumber', 'tool', 'amountMicros'] as const;
  const hashes = drafts.map(({ idempotencyHash }) => int64(idempotencyHash?.slice(0, 16)));
  const fingerprints = drafts.map(({ idempotencyHash, fingerprint }) =>
    int64(`${idempotencyHash?.slice(16)}${fingerprint}`),
  );
  const sent = [...charges.map(column), hashes, fingerprints, column('metadata')];
  const { fromId, toId } = replayWindow();
  await explaining.query('begin');
  await explaining.query(
    `select farebox.post_fitting_charges($1::int2[], $2::uuid[], $3::int8[], $4::int4[], $5::int8[],
       $6::uuid[], $7::int4[], $8::text[], $9::int8[], $10::int8[], $11::int8[], $12::text[], 1::int2,
       $13::uuid, $14::uuid)`,
    [
      column('ledger'),
      column('consumerId'),
      column('amountMicros'),
      drafts.map((_, index) => index + 1),
      column('amountMicros'),
      ...sent,
      fromId,
      toId,
    ],
  );
  await explaining.query('rollback');
  await explaining.query(
    `select * from farebox.post_charges($1::int2[], $2::uuid[], $3::uuid[], $4::int4[],
       $5::text[], $6::int8[], $7::int8[], $8::int8[], $9::text[], 1::int2, $10::uuid, $11::uuid)`,
    [column('ledger'), column('consumerId'), ...sent, fromId, toId],
  );
  explaining.off('notice', onNotice);
  return plans;
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
