/** `farebox account adjust`: money that an operator adds or takes, booked as an adjustment. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { uuidOf } from '../../src/domain/ids.ts';
import { refundCharge } from '../../src/store/charges/refund-charge.ts';
import { createDatabase } from '../../src/store/database.ts';
import { CuttingProxy } from '../client/cutting-proxy.ts';
import { createAccount, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { endAll } from '../support/end-all.ts';
import {
  createTestDatabase,
  farebox,
  until,
  type Environment,
  type TestDatabase,
} from '../support/stack.ts';

describe('farebox account adjust', () => {
  let database: TestDatabase;
  let sql: Client;
  let env: Environment;
  let account: TestAccount;

  before(async () => {
    database = await createTestDatabase();
    env = { DATABASE_URL: database.url };
    sql = new Client({ connectionString: database.url });
    await sql.connect();
    account = await createAccount(env, 10);
  });
  after(() =>
    endAll(
      () => proveBooks(env, { processor: false }),
      () => sql?.end(),
      () => database?.drop(),
    ),
  );

  const adjust = async (amount: string, reason = 'goodwill'): Promise<unknown> => {
    const args = ['account', 'adjust', account.consumerId, amount, '--reason', reason, '--json'];
    return JSON.parse(await farebox(args, { env }));
  };

  /** `[from, to)` in micros, and whether it belongs to a top-up. */
  async function lots() {
    const { rows } = await sql.query<{ lot: string }>(
      `select from_micros || '-' || to_micros || case when top_up_id is null then '' else ' top-up' end as lot
      from farebox.lots where consumer_id = $1 order by from_micros, to_micros`,
      [uuidOf('consumer', account.consumerId)],
    );
    return rows.map(({ lot }) => lot);
  }

  async function movements() {
    const { rows } = await sql.query<{ kind: string; micros: string; reason: string | null }>(
      `select kind, amount_micros as micros, reason from farebox.movements
      where consumer_id = $1 order by created_at, id`,
      [uuidOf('consumer', account.consumerId)],
    );
    return rows.map(({ kind, micros, reason }) => [kind, Number(micros), reason]);
  }

  it('adds any amount in micros, as its own lot without a top-up', async () => {
    const { consumerId } = account;
    assert.deepEqual(await adjust('2.000001', 'an outage on Monday'), {
      consumerId,
      amount: 2.000001,
      balance: 12.000001,
      debt: 0,
    });
    assert.deepEqual(await lots(), ['0-10000000 top-up', '10000000-12000001']);
    assert.deepEqual((await movements()).at(-1), ['adjustment', 2_000_001, 'an outage on Monday']);
  });

  it('takes from the unspent parts of lots, the oldest first', async () => {
    assert.deepEqual(await adjust('-3.5'), {
      consumerId: account.consumerId,
      amount: -3.5,
      balance: 8.500001,
      debt: 0,
    });
    assert.deepEqual(await lots(), ['0-6500000 top-up', '6500000-8500001']);
    assert.deepEqual((await movements()).at(-1), ['adjustment', -3_500_000, 'goodwill']);
  });

  it('takes the whole balance, and then nothing more', async () => {
    await assert.rejects(adjust('-8.500002'), /The balance is \$8\.500001/);
    await adjust('-8.500001');
    await assert.rejects(adjust('-0.000001'), /The balance is \$0\.00 /);
  });

  it('is refused beyond the largest exact number, and so is a refund of a charge', async () => {
    const { consumerId } = await createAccount(env, 1);
    const consumer = uuidOf('consumer', consumerId);
    const pool = await createDatabase(database.url, { maxPoolSize: 1, onError: () => {} });
    try {
      // As after 9,000 credits of the largest amount.
      const bigger = Number.MAX_SAFE_INTEGER - 1_000_000;
      await sql.query(
        `with raised as (
           update farebox.consumers set credited_micros = credited_micros + $2, spent_micros = $2
           where id = $1 returning ledger, id
         ), moved as (
           insert into farebox.movements (ledger, consumer_id, id, kind, amount_micros, reason)
           select ledger, id, '01900000-0000-7000-8000-000000000001', 'adjustment', $2, 'a test' from raised
         )
         insert into farebox.charges (ledger, id, consumer_id, developer, tool, receipt_key,
           amount_micros, spent_micros, balance_micros)
         select ledger, '01900000-0000-7000-8000-000000000002', id, 1, 'search', 1, 5, $2, 1000000 from raised`,
        [consumer, bigger],
      );
      const args = ['account', 'adjust', consumerId, '0.000001', '--reason', 'one too many'];
      await assert.rejects(farebox(args, { env }), /would exceed \$9,007,199,254\.740991/);
      const refunded = await refundCharge(pool, {
        developerNumber: 1,
        chargeId: '01900000-0000-7000-8000-000000000002',
        askedMicros: null,
        idempotencyKey: undefined,
      });
      assert.deepEqual(refunded, { kind: 'too_much_credited' });
      const past = sql.query('update farebox.consumers set credited_micros = $2 where id = $1', [
        consumer,
        '9007199254740992',
      ]);
      await assert.rejects(past, /consumers_credited_is_exact/);
    } finally {
      await pool.end();
      // The amounts booked above are too large for requests, and are not a complete history.
      await sql.query('delete from farebox.charges where consumer_id = $1', [consumer]);
      await sql.query(
        `delete from farebox.movements where consumer_id = $1 and kind = 'adjustment'`,
        [consumer],
      );
      await sql.query(
        'update farebox.consumers set credited_micros = 1000000, spent_micros = 0 where id = $1',
        [consumer],
      );
    }
  });

  it('takes at most the balance under concurrent requests', async () => {
    await adjust('1');
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => adjust('-0.3')));
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 3);
    assert.deepEqual(await adjust('10000000'), {
      consumerId: account.consumerId,
      amount: 10_000_000,
      balance: 10_000_000.1,
      debt: 0,
    });
  });

  it('adjusts once with an idempotency key, repeated after its connection was lost at the commit', async () => {
    const { consumerId } = await createAccount(env, 1);
    const args = ['account', 'adjust', consumerId, '2', '--reason', 'goodwill', '--json'];
    const keyed = [...args, '--idempotency-key', 'ticket-7'];
    await using proxy = await CuttingProxy.start(database.url, (chunk) =>
      // Without its answer, so the command does not know whether it committed.
      /^.{5}commit/is.test(chunk.toString('latin1')) ? 'after' : undefined,
    );
    const cut = new URL(database.url);
    cut.host = new URL(proxy.url).host;
    await assert.rejects(farebox(keyed, { env: { DATABASE_URL: cut.href } }));
    assert.equal(proxy.cuts, 1);
    const booked = () =>
      sql
        .query(`select from farebox.movements where consumer_id = $1 and kind = 'adjustment'`, [
          uuidOf('consumer', consumerId),
        ])
        .then(({ rowCount }) => rowCount);
    await until(async () => (await booked()) === 1);
    const adjusted = { consumerId, amount: 2, balance: 3, debt: 0 };
    assert.deepEqual(JSON.parse(await farebox(keyed, { env })), adjusted);
    assert.equal(await booked(), 1);
    await farebox(args, { env });
    assert.equal(await booked(), 2, 'without a key, each command is an adjustment');
  });

  const keyedArgs = (amount: string, reason: string, key = 'ticket-8') => {
    const args = ['account', 'adjust', account.consumerId, amount, '--reason', reason];
    return [...args, '--idempotency-key', key];
  };

  it('refuses the key of another adjustment, and a key that is none', async () => {
    await farebox(keyedArgs('1', 'goodwill'), { env });
    const before = await movements();
    for (const other of [keyedArgs('2', 'goodwill'), keyedArgs('1', 'another reason')]) {
      await assert.rejects(farebox(other, { env }), /belongs to another adjustment/);
    }
    await assert.rejects(farebox(keyedArgs('1', 'goodwill', 'ümlaut'), { env }), /printable ASCII/);
    assert.deepEqual(await movements(), before);
  });

  const refusals: Readonly<Record<string, readonly [string, string, RegExp]>> = {
    'nothing at all': ['0', 'why', /not 0/],
    'a fraction of a micro-dollar': ['0.0000001', 'why', /at most six decimals/],
    'more than ten million dollars': ['10000000.01', 'why', /\$10,000,000/],
    'minus more than ten million dollars': ['-10000000.01', 'why', /\$10,000,000/],
    'what is no number': ['much', 'why', /six decimals/],
    'what is written otherwise': ['1e3', 'why', /six decimals/],
    'a doubled sign': ['--5', 'why', /./],
    'an empty reason': ['1', '  ', /1 to 500 characters/],
    'an endless reason': ['1', 'x'.repeat(501), /1 to 500 characters/],
    'a reason with a line break': ['1', 'good\nwill', /printable text/],
    'a reason with a line separator': ['1', 'good\u2028will', /printable text/],
  };
  for (const [what, [amount, reason, said]] of Object.entries(refusals)) {
    it(`refuses ${what}, and changes nothing`, async () => {
      const before = await movements();
      await assert.rejects(adjust(amount, reason), (error: { stderr?: string }) => {
        assert.match(error.stderr ?? '', said);
        return true;
      });
      assert.deepEqual(await movements(), before);
    });
  }

  it('refuses an unknown account, and an adjustment without a reason', async () => {
    const nobody = ['account', 'adjust', 'nobody@example.com', '1', '--reason', 'why'];
    await assert.rejects(farebox(nobody, { env }), /Account nobody@example\.com not found/);
    const silent = ['account', 'adjust', account.consumerId, '1'];
    await assert.rejects(farebox(silent, { env }), /--reason/);
  });
});
