/** What the charge statements write beside charges: earnings, the payers, and when to top up. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUIDv7 } from 'node:crypto';
import * as fc from 'fast-check';
import { Client } from 'pg';
import { HOUR_MS } from '../../../src/domain/durations.ts';
import { uuidFloor } from '../../../src/domain/ids.ts';
import { postFittingCharges, type ChargeDraft } from '../../../src/store/charges/post-charges.ts';
import { postSpends } from '../../../src/store/charges/post-spends.ts';
import { sql, type Database } from '../../../src/store/database.ts';
import { SPENT_BY_KEYS } from '../../../src/store/budgets/usage.ts';
import { waitingSpending } from '../../../src/store/budgets/waiting-spending.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { createTestAccount } from '../../support/accounts.ts';
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

const BALANCE = 20;

/** Some are covered and some are not; developers, tools and hours recur. */
const anyCharge = fc.record({
  consumer: fc.nat(2),
  amount: fc.integer({ min: 1, max: BALANCE + 2 }),
  developer: fc.integer({ min: 1, max: 2 }),
  tool: fc.constantFrom('search', 'fetch'),
  hour: fc.nat(2),
  isKeyed: fc.boolean(),
});
const anyLoad = fc.array(fc.array(anyCharge, { minLength: 1, maxLength: 8 }), { maxLength: 5 });
/** By none, or by one of two spend keys of the only budget. */
const anySpend = fc.record({ drawn: anyCharge, spendKey: fc.nat(2) });
const anySpends = fc.array(fc.array(anySpend, { minLength: 1, maxLength: 8 }), { maxLength: 5 });
/** The limit of each budget; a consumer has somewhat more. */
const LIMIT = 12;

describe('the tails of charges', () => {
  let ledger: TestLedger;
  let database: Database;
  let client: Client;

  before(async () => {
    ledger = await openTestLedger(1);
    await ensureChargePartitions(ledger.url, Date.now());
    ({ database } = ledger);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    await createTestAccount(ledger.url, 0);
    // An hour has to be a UTC hour, in any session time zone.
    await client.query(`alter database ${client.database} set timezone = 'Asia/Kathmandu'`);
  });

  after(async () => {
    await client.end();
    await ledger.drop();
  });

  it('agree with the charges, after any charges, refusals and replays', async () => {
    await fc.assert(
      fc.asyncProperty(anyLoad, async (batches) => {
        await empty();
        const consumers = await newConsumers(client, 3, BALANCE);
        for (const batch of batches) {
          const drafts = batch.map((drawn) => draftOf(consumers, drawn));
          await post(database, drafts);
          await post(database, drafts.filter(isKeyed)); // replays, or refusals
        }
        assert.deepEqual(await earned('earnings_tail'), await earned('charges'));
        assert.deepEqual(await stretches(ATTRIBUTED), await stretches(CHARGED));
      }),
      { numRuns: 60 },
    );
  });

  it('take one row per flush for a tool’s earnings, and one for the payers', async () => {
    await empty();
    const consumers = await newConsumers(client, 3, BALANCE);
    const time = randomUUIDv7().slice(0, 14);
    const drafts = consumers.map((consumer) => newDraft(consumer, 1));
    await post(
      database,
      drafts.map((draft) => ({ ...draft, id: time + draft.id.slice(14) })),
    );
    const { rows } = await client.query<{ earnings: number; attributions: number }>(`
      select (select count(*)::int from farebox.earnings_tail) as earnings,
        (select count(*)::int from farebox.attribution_tail) as attributions
    `);
    assert.deepEqual(rows, [{ earnings: 1, attributions: 1 }]);
  });

  it('agree with the charges by spend keys and with plain ones, after any of them and any refusals', async () => {
    await fc.assert(
      fc.asyncProperty(anySpends, async (batches) => {
        await empty();
        const consumers = await withBudgets(await newConsumers(client, 3, BALANCE));
        for (const batch of batches) {
          await spend(
            batch.map(({ drawn, spendKey }) => ({
              // A charge of today or of the two days before.
              ...draftOf(consumers, { ...drawn, hour: 24 * drawn.hour }),
              spend: spendKey === 0 ? null : { number: spendKey, path: [1] },
            })),
          );
        }
        assert.deepEqual(await earned('earnings_tail'), await earned('charges'));
        assert.deepEqual(await stretches(ATTRIBUTED), await stretches(CHARGED));
        assert.deepEqual(await spent(waitingSpending()), await spent(SPENT_BY_KEYS));
      }),
      { numRuns: 60 },
    );
  });

  it('take one row per flush for what any number of spend keys spent, beside those of plain charges', async () => {
    await empty();
    const consumers = await withBudgets(await newConsumers(client, 3, BALANCE));
    const time = randomUUIDv7().slice(0, 14);
    await spend(
      [...consumers, ...consumers].map((consumer, index) => {
        const draft = newDraft(consumer, 1);
        return { ...draft, id: time + draft.id.slice(14), spend: { number: index + 1, path: [1] } };
      }),
    );
    const { rows } = await client.query(`
      select (select count(*)::int from farebox.earnings_tail) as earnings,
        (select count(*)::int from farebox.key_spending_tail) as spending,
        (select count(*)::int from farebox.attribution_tail) as attributions
    `);
    assert.deepEqual(rows, [{ earnings: 1, spending: 1, attributions: 1 }]);
  });

  describe('an automatic top-up', () => {
    it('is requested once, by the charge that takes the balance below the threshold', async () => {
      const consumer = await withThreshold(10);
      await post(database, [newDraft(consumer, 10)]); // leaves exactly the threshold
      assert.equal(await notices(consumer), 0);
      await post(database, [newDraft(consumer, 1)]);
      assert.equal(await notices(consumer), 1);
      await post(database, [newDraft(consumer, 1), newDraft(consumer, 30)]);
      assert.equal(await notices(consumer), 1);
    });

    it('is requested by a refused charge that it would cover with what the others leave', async () => {
      const consumer = await withThreshold(5);
      await client.query(
        `insert into farebox.auto_top_ups (ledger, consumer_id, threshold_micros, amount_micros, ceiling_micros)
         values ($1, $2, 5, 17, 17)`,
        [consumer.ledger, consumer.consumerId],
      );
      await post(database, [newDraft(consumer, 3), newDraft(consumer, 31), newDraft(consumer, 4)]);
      assert.equal(await notices(consumer), 0);
      await post(database, [newDraft(consumer, 30)]);
      assert.equal(await notices(consumer), 1);
    });

    it('is not requested by a replay, nor when it is off', async () => {
      const [off] = (await newConsumers(client, 1, BALANCE)) as [Consumer];
      await post(database, [newDraft(off, BALANCE), newDraft(off, 1)]);
      assert.equal(await notices(off), 0);

      const consumer = await withThreshold(null);
      const draft = { ...newDraft(consumer, 15), ...newKey() };
      await post(database, [draft]);
      await setThreshold(consumer, 10);
      await post(database, [draft]);
      assert.equal(await notices(consumer), 0);
    });

    it('is requested with its charge or not at all', async () => {
      const consumer = await withThreshold(10);
      await assert.rejects(post(database, [newDraft(consumer, 15), newDraft(consumer, 0)]));
      assert.equal(await notices(consumer), 0);
    });
  });

  async function empty(): Promise<void> {
    await client.query(`truncate farebox.charges, farebox.earnings_tail, farebox.key_spending_tail,
      farebox.attribution_tail`);
  }

  /** The same consumers, each with a budget. */
  async function withBudgets(consumers: Consumer[]): Promise<Consumer[]> {
    for (const { ledger, consumerId } of consumers) {
      await client.query(
        `with made as (
           insert into farebox.budgets (ledger, consumer_id, number, limit_micros) values ($1, $2, 1, $3)
         ), detailed as (
           insert into farebox.budget_details (id, ledger, consumer_id, number, path, name)
           values (uuidv7(), $1, $2, 1, '{1}', 'a test')
         )
         insert into farebox.spend_keys (id, hash, account_id, ledger, consumer_id, number, budget, path, last_four)
         select uuidv7(), sha256(uuid_send(uuidv7())), a.id, $1, $2, n, 1, '{1}', 'test'
         from generate_series(1, 2) n, (select id from farebox.accounts limit 1) a`,
        [ledger, consumerId, LIMIT],
      );
    }
    return consumers;
  }

  /** By both statements, like the batcher. */
  async function spend(drafts: readonly ChargeDraft[]): Promise<void> {
    const outcomes = await postFittingCharges(database, drafts, RECEIPT_KEY, replayWindow());
    const left = drafts.filter((_, index) => outcomes[index] === undefined);
    if (left.length > 0) await postSpends(database, left, RECEIPT_KEY, replayWindow());
  }

  async function spent(from: ReturnType<typeof waitingSpending>) {
    return database.any(sql.unsafe`
      select ledger, consumer_id, spend_key, developer, tool, (minute at time zone 'UTC')::date::text as day,
        sum(amount_micros)::text as micros, sum(charges)::text as charges
      from (${from}) s group by 1, 2, 3, 4, 5, 6 order by 1, 2, 3, 4, 5, 6
    `);
  }

  async function withThreshold(micros: number | null): Promise<Consumer> {
    const [consumer] = (await newConsumers(client, 1, BALANCE)) as [Consumer];
    await setThreshold(consumer, micros);
    return consumer;
  }

  async function setThreshold({ consumerId }: Consumer, micros: number | null): Promise<void> {
    await client.query('update farebox.consumers set auto_top_up_below_micros = $2 where id = $1', [
      consumerId,
      micros,
    ]);
  }

  async function notices({ consumerId }: Consumer): Promise<number> {
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::int from farebox.outbox where topic = 'auto_top_up' and subject_id = $1`,
      [consumerId],
    );
    return rows[0]?.count ?? 0;
  }

  async function earned(table: 'charges' | 'earnings_tail') {
    const charges = {
      charges: `date_trunc('minute', uuid_extract_timestamp(id), 'UTC') as minute, count(*)::int`,
      earnings_tail: 'minute, sum(charges)::int',
    };
    const { rows } = await client.query(`
      select developer, tool, sum(amount_micros)::int as micros, ${charges[table]} as charges
      from farebox.${table} group by developer, tool, minute order by developer, tool, minute
    `);
    return rows;
  }

  async function stretches(from: string) {
    const { rows } = await client.query(`
      select ledger, consumer, developer, ends::int, amount::int from (${from}) s
      order by consumer, ends
    `);
    return rows;
  }
});

const CHARGED = `
  select ledger, consumer_id as consumer, developer, spent_micros as ends, amount_micros as amount
  from farebox.charges`;

const ATTRIBUTED = `
  select ledgers[grp] as ledger, consumers[grp] as consumer, developer,
    spent_before[grp] + reached as ends, amount
  from farebox.attribution_tail cross join lateral
    unnest(charge_group, through, developers, amounts) c (grp, reached, developer, amount)
  where spent_before[grp] is not null`;

type Drawn = typeof anyCharge extends fc.Arbitrary<infer T> ? T : never;

function draftOf(consumers: readonly Consumer[], drawn: Drawn): ChargeDraft {
  const { consumer, amount, developer, tool, hour, isKeyed: keyed } = drawn;
  const time = uuidFloor(Date.now() - hour * HOUR_MS);
  return {
    ...newDraft(consumers[consumer]!, amount),
    id: time.slice(0, -12) + randomBytes(6).toString('hex'),
    developerNumber: developer,
    tool,
    ...(keyed ? newKey() : {}),
  };
}

function isKeyed({ idempotencyHash }: ChargeDraft): boolean {
  return idempotencyHash !== null;
}
