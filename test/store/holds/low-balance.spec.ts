/** A hold that leaves too little, or is not covered, requests an automatic top-up, once, like a charge. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { newConsumers, type Consumer } from '../../support/charge-drafts.ts';
import { placing, postEntries, releasing } from '../../support/hold-drafts.ts';
import { openTestLedger, type TestLedger } from '../../support/ledger.ts';

describe('holds of consumers with automatic top-ups', () => {
  let ledger: TestLedger;
  let client: Client;
  let consumer: Consumer;

  before(async () => {
    ledger = await openTestLedger(2);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
  });
  beforeEach(async () => {
    [consumer] = (await newConsumers(client, 1, 100)) as [Consumer];
    await client.query('update farebox.consumers set auto_top_up_below_micros = 50 where id = $1', [
      consumer.consumerId,
    ]);
  });
  after(async () => {
    await client?.end();
    await ledger?.drop();
  });

  const place = async (micros: number) => {
    const [outcome] = await postEntries(ledger.database, [placing(consumer, micros)]);
    return outcome ?? assert.fail();
  };
  const notices = async () =>
    (await client.query('select from farebox.outbox where subject_id = $1', [consumer.consumerId]))
      .rowCount;

  it('request none while enough is left', async () => {
    await place(50);
    assert.equal(await notices(), 0);
  });

  it('request one when a hold leaves too little', async () => {
    await place(51);
    await place(1);
    assert.equal(await notices(), 1);
  });

  it('request one for a hold that is not covered, and would be with it', async () => {
    const { ledger: number, consumerId } = consumer;
    await client.query(
      `insert into farebox.auto_top_ups (ledger, consumer_id, threshold_micros, amount_micros, ceiling_micros)
       values ($1, $2, 50, 1, 1)`,
      [number, consumerId],
    );
    assert.equal((await place(102)).kind, 'insufficient');
    assert.equal(await notices(), 0);
    assert.equal((await place(101)).kind, 'insufficient');
    assert.equal(await notices(), 1);
  });

  it('request none when they are released', async () => {
    const placed = await place(40);
    assert.ok(placed.kind === 'done');
    await client.query(
      'update farebox.consumers set auto_top_up_below_micros = 500 where id = $1',
      [consumer.consumerId],
    );
    await postEntries(ledger.database, [releasing(placed.hold.id)]);
    assert.equal(await notices(), 0);
  });
});
