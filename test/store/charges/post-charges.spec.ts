/**
 * The charge statement against a small model in memory: which charges are made, refused and replayed, and that
 * the books add up for any requests in any order and concurrency.
 */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import * as fc from 'fast-check';
import { Client } from 'pg';
import { asMicros } from '../../../src/domain/money.ts';
import type { ChargeDraft, ChargeOutcome } from '../../../src/store/charges/post-charges.ts';
import type { Database } from '../../../src/store/database.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';
import {
  newConsumers,
  newDraft,
  newKey,
  post,
  RECEIPT_KEY,
  type Consumer,
} from '../../support/charge-drafts.ts';

/** A charge as a property generates it; keys and bodies are few, so that they recur. */
interface Ask {
  readonly consumer: number;
  readonly amount: number;
  readonly key: number | null;
  readonly body: number;
}

const BALANCE = 20;
const anyAsk: fc.Arbitrary<Ask> = fc.record({
  consumer: fc.nat(2),
  // From a fraction of the balance to just above it.
  amount: fc.integer({ min: 1, max: BALANCE + 2 }),
  key: fc.option(fc.nat(3)),
  body: fc.nat(1),
});
/** A statement has a key at most once: its caller ensures it. */
const anyBatch = fc.uniqueArray(anyAsk, {
  minLength: 1,
  maxLength: 8,
  comparator: (a, b) => a.key !== null && a.key === b.key && a.consumer === b.consumer,
});

/** The promise of the statement, in its simplest form. */
class Model {
  readonly spent = new Map<string, number>();
  readonly #made = new Map<
    string,
    { fingerprint: string | null; outcome: ChargeOutcome & { kind: 'posted' } }
  >();

  decide(draft: ChargeDraft): ChargeOutcome {
    const earlier = this.#made.get(draft.idempotencyHash ?? '');
    if (earlier) {
      return earlier.fingerprint === draft.fingerprint
        ? { ...earlier.outcome, kind: 'replayed' }
        : { kind: 'key_reused' };
    }
    const spent = this.spent.get(draft.consumerId) ?? 0;
    const balance = BALANCE - spent;
    if (draft.amountMicros > balance) {
      return { kind: 'insufficient', balanceMicros: asMicros(balance) };
    }
    this.spent.set(draft.consumerId, spent + draft.amountMicros);
    const outcome = {
      kind: 'posted' as const,
      id: draft.id,
      amountMicros: draft.amountMicros,
      balanceMicros: asMicros(balance - draft.amountMicros),
      cardVersion: 0,
      receiptKey: RECEIPT_KEY,
    };
    if (draft.idempotencyHash !== null) {
      this.#made.set(draft.idempotencyHash, { fingerprint: draft.fingerprint, outcome });
    }
    return outcome;
  }
}

interface ChargeRow {
  readonly id: string;
  readonly amount: number;
  readonly spent: number;
  readonly balance: number;
}

describe('post_charges', () => {
  let ledger: TestLedger;
  let database: Database;
  let client: Client;

  before(async () => {
    ledger = await openTestLedger(2);
    await ensureChargePartitions(ledger.url, Date.now());
    ({ database } = ledger);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
  });

  after(async () => {
    await client.end();
    await ledger.drop();
  });

  it('decides any batches just as the model does, one charge after the other', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyBatch, { minLength: 1, maxLength: 6 }), async (batches) => {
        const consumers = await newConsumers(client, 3, BALANCE);
        const model = new Model();
        for (const batch of batches) {
          const drafts = batch.map((ask) => draftOf(consumers, ask));
          const expected = drafts.map((draft) => model.decide(draft));
          assert.deepEqual(await post(database, drafts), expected);
        }
        for (const consumer of consumers) {
          const spent = await assertBooksAddUp(consumer, BALANCE);
          assert.equal(spent, model.spent.get(consumer.consumerId) ?? 0);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('makes each key one charge and never overspends, with two connections at once', async () => {
    const anyLoad = fc.array(anyBatch, { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(anyLoad, anyLoad, async (mine, yours) => {
        const consumers = await newConsumers(client, 3, BALANCE);
        const decided = await Promise.all([mine, yours].map((load) => runAlone(consumers, load)));
        const all = decided.flat();
        for (const consumer of consumers) {
          const spent = await assertBooksAddUp(consumer, BALANCE);
          const posted = all.filter(
            ({ draft, outcome }) =>
              outcome.kind === 'posted' && draft.consumerId === consumer.consumerId,
          );
          assert.equal(
            posted.reduce((sum, { draft }) => sum + draft.amountMicros, 0),
            spent,
          );
        }
        assertKeysMadeOneCharge(all);
        for (const { draft, outcome } of all) {
          if (outcome.kind !== 'insufficient') continue;
          assert.ok(outcome.balanceMicros < draft.amountMicros);
          assert.ok(outcome.balanceMicros >= 0);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('does not let a refused big charge take a later small one with it', async () => {
    const consumer = await newConsumer(10);
    const outcomes = await post(
      database,
      [11, 4, 7, 6, 1].map((amount) => newDraft(consumer, amount)),
    );
    assert.deepEqual(outcomes.map(summaryOf), [
      'insufficient 10',
      'posted 6',
      'insufficient 6',
      'posted 0',
      'insufficient 0',
    ]);
  });

  it('decides a consumer’s charges in order, with others in between', async () => {
    const [first, second] = (await newConsumers(client, 2, 10)) as [Consumer, Consumer];
    const outcomes = await post(database, [
      newDraft(second, 10),
      newDraft(first, 9),
      newDraft(second, 1),
      newDraft(first, 1),
      newDraft(first, 1),
    ]);
    assert.deepEqual(outcomes.map(summaryOf), [
      'posted 0',
      'posted 1',
      'insufficient 0',
      'posted 0',
      'insufficient 0',
    ]);
  });

  it('takes the balance to exactly nothing, and not a micro-dollar further', async () => {
    const [exact, short] = (await newConsumers(client, 2, 1_000)) as [Consumer, Consumer];
    assert.deepEqual((await post(database, [newDraft(exact, 1_000)])).map(summaryOf), ['posted 0']);
    assert.deepEqual((await post(database, [newDraft(short, 1_001)])).map(summaryOf), [
      'insufficient 1000',
    ]);
  });

  it('does not spend what is held', async () => {
    const consumer = await newConsumer(10);
    await client.query('update farebox.consumers set held_micros = 7 where id = $1', [
      consumer.consumerId,
    ]);
    const outcomes = await post(database, [newDraft(consumer, 4), newDraft(consumer, 3)]);
    assert.deepEqual(outcomes.map(summaryOf), ['insufficient 3', 'posted 0']);
  });

  it('stores no refusal: the same key succeeds when there is money', async () => {
    const consumer = await newConsumer(1);
    const draft = { ...newDraft(consumer, 5), ...newKey() };
    assert.deepEqual((await post(database, [draft])).map(summaryOf), ['insufficient 1']);
    await client.query('update farebox.consumers set credited_micros = 5 where id = $1', [
      consumer.consumerId,
    ]);
    assert.deepEqual((await post(database, [draft])).map(summaryOf), ['posted 0']);
    const again = { ...draft, id: randomUUIDv7() };
    assert.deepEqual(
      (await post(database, [again])).map((outcome) => 'id' in outcome && outcome.id),
      [draft.id],
    );
  });

  it('does nothing of a batch that the database rejects', async () => {
    const consumer = await newConsumer(10);
    const bad = newDraft(consumer, 0);
    await assert.rejects(post(database, [newDraft(consumer, 1), bad]));
    assert.equal(await assertBooksAddUp(consumer, 10), 0);
  });

  async function newConsumer(credited: number): Promise<Consumer> {
    const [consumer] = await newConsumers(client, 1, credited);
    return consumer!;
  }

  /** On one connection, one batch after the other. */
  function runAlone(consumers: readonly Consumer[], load: readonly (readonly Ask[])[]) {
    return database.connect(async (connection) => {
      const decided: Decided[] = [];
      for (const batch of load) {
        const drafts = batch.map((ask) => draftOf(consumers, ask));
        const outcomes = await post(connection, drafts);
        decided.push(...drafts.map((draft, index) => ({ draft, outcome: outcomes[index]! })));
      }
      return decided;
    });
  }

  /**
   * Balance = credited - spent >= 0; the charges tile [0, spent) without gap or overlap, and each has the
   * balance that was left after it. Returns the spent amount.
   */
  async function assertBooksAddUp(consumer: Consumer, credited: number): Promise<number> {
    const counters = await client.query<{ spent: number }>(
      'select spent_micros::float8 as spent from farebox.consumers where ledger = $1 and id = $2',
      [consumer.ledger, consumer.consumerId],
    );
    const charges = await client.query<ChargeRow>(
      `select id, amount_micros::float8 as amount, spent_micros::float8 as spent,
         balance_micros::float8 as balance
       from farebox.charges where ledger = $1 and consumer_id = $2 order by spent_micros`,
      [consumer.ledger, consumer.consumerId],
    );
    let position = 0;
    for (const { amount, spent, balance } of charges.rows) {
      assert.equal(spent - amount, position);
      assert.equal(balance, credited - spent);
      position = spent;
    }
    assert.equal(counters.rows[0]?.spent, position);
    assert.ok(position <= credited);
    return position;
  }
});

interface Decided {
  readonly draft: ChargeDraft;
  readonly outcome: ChargeOutcome;
}

/** The same key of the same consumer has the same hash, as in charge.ts. */
function draftOf(
  consumers: readonly Consumer[],
  { consumer, amount, key, body }: Ask,
): ChargeDraft {
  const draft = newDraft(consumers[consumer]!, amount);
  if (key === null) return draft;
  // Two keys that share the part for the lookup, and differ in the part for the comparison.
  const hash = draft.consumerId.replaceAll('-', '').slice(-15) + `${key >> 1}00000${key & 1}`;
  // The amount is part of the body, so another amount is another fingerprint.
  return { ...draft, idempotencyHash: hash, fingerprint: `${amount * 2 + body}`.padStart(10, '0') };
}

function summaryOf(outcome: ChargeOutcome): string {
  return 'balanceMicros' in outcome ? `${outcome.kind} ${outcome.balanceMicros}` : outcome.kind;
}

function assertKeysMadeOneCharge(decided: readonly Decided[]): void {
  const made = new Map<string, Decided>();
  for (const each of decided) {
    const { draft, outcome } = each;
    if (outcome.kind !== 'posted' || draft.idempotencyHash === null) continue;
    assert.ok(!made.has(draft.idempotencyHash), 'a key made two charges');
    made.set(draft.idempotencyHash, each);
  }
  for (const { draft, outcome } of decided) {
    if (outcome.kind !== 'replayed' && outcome.kind !== 'key_reused') continue;
    const first = made.get(draft.idempotencyHash ?? '');
    assert.ok(first, 'something was replayed that was never made');
    assert.equal(outcome.kind === 'replayed', first.draft.fingerprint === draft.fingerprint);
    if (outcome.kind === 'replayed')
      assert.deepEqual({ ...outcome, kind: 'posted' }, first.outcome);
  }
}
