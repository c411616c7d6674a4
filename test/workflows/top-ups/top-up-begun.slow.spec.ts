/** A promised top-up starts, even if its workflow is lost before the first step. */
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { sql } from '../../../src/store/database.ts';
import type { TopUp } from '../../../src/store/top-ups/top-ups.ts';
import { handOverNotices } from '../../../src/temporal/relay.ts';
import { until, type Server } from '../../support/stack.ts';
import {
  openTopUpHarness,
  type Consumer,
  type TopUpHarness,
} from '../../support/top-up-harness.ts';

describe('a top-up that no worker has taken up', () => {
  let harness: TopUpHarness;
  let consumer: Consumer;
  let worker: Server | undefined;

  before(async () => {
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000', TOP_UP_ANSWER_MS: '1000' });
  });
  beforeEach(async () => {
    consumer = await harness.newConsumer();
  });
  afterEach(async () => {
    await worker?.stop();
    worker = undefined;
  });
  after(() => harness.close());

  it('starts when a worker comes an hour later', async () => {
    const [direct, checkout] = await Promise.all([promised('direct'), promised('checkout')]);
    await anHourPasses();
    worker = await harness.startWorker();
    await until(async () => (await harness.topUp(checkout.id)).sessionUrl);
    // Nobody expects a card to be charged so much later.
    await harness.statusBecomes(direct, 'failed');
    assert.equal((await harness.topUp(direct.id)).failureCode, 'payment_too_late');
    assert.deepEqual(await harness.paymentsOf(direct), []);
    await until(async () => (await harness.waitingNotices()) === 0);
  });

  it('starts again, and once, when its workflow was terminated before the first step', async () => {
    const direct = await promised('direct');
    await relayed();
    await lose(direct);
    worker = await harness.startWorker();
    await harness.statusBecomes(direct, 'completed');
    assert.equal((await harness.books(consumer)).credited, 20_000_000);
    assert.equal((await harness.paymentsOf(direct)).length, 1);
  });

  it('does not stop later automatic ones when its workflow is lost', async () => {
    await harness.request(consumer, 'direct', 20); // stays pending: no worker
    await harness.topUpAutomatically(consumer);
    await harness.charge(consumer);
    await relayed();
    const automatic = await until(async () => (await harness.automaticTopUps(consumer))[0]);
    await relayed();
    await lose(automatic);
    await anHourPasses();
    worker = await harness.startWorker();
    await harness.statusBecomes(automatic, 'completed');
    assert.equal((await harness.paymentsOf(automatic)).length, 1);
  });

  /** Answered 202, while no worker runs. */
  async function promised(method: 'direct' | 'checkout'): Promise<TopUp> {
    const result = await harness.request(consumer, method, 20);
    assert.ok(result.kind === 'pending', result.kind);
    return result.topUp;
  }

  async function anHourPasses(): Promise<void> {
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.top_ups set created_at = created_at - interval '1 hour',
        updated_at = updated_at - interval '1 hour'
    `);
    await harness.database.query(sql.typeAlias('nothing')`
      update farebox.outbox set next_attempt_at = now(), created_at = created_at - interval '1 hour'
    `);
  }

  /** A relay without a worker, which hands over due notices. */
  async function relayed(): Promise<void> {
    const deps = {
      database: harness.database,
      temporal: harness.temporal,
      log: pino({ level: 'silent' }),
    };
    await harness.database.query(
      sql.typeAlias('nothing')`update farebox.outbox set next_attempt_at = now()`,
    );
    assert.ok((await handOverNotices(deps, 50, 15_000)) > 0);
  }

  async function lose(topUp: TopUp): Promise<void> {
    const workflow = harness.workflow(topUp.id);
    await workflow.terminate();
    await until(async () => (await workflow.describe()).status.name === 'TERMINATED');
  }
});
