/** Hundreds of thousands of rows without a partition are moved to their months while charges and captures continue. */
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { Client } from 'pg';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { newConsumers, newDraft, post, type Consumer } from '../../support/charge-drafts.ts';
import { openMigratedLedger, type TestLedger } from '../../support/ledger.ts';
import { asSuperuser, until } from '../../support/stack.ts';

const MISPLACED = 200_000;
const HOLDS = 20_000;
/** Charges end in most of so many equal parts of the move: none locks them out for most of its time. */
const PARTS = 8;

describe('rows in the default partitions', () => {
  let ledger: TestLedger;
  let client: Client;
  let consumer: Consumer;

  before(async () => {
    ledger = await openMigratedLedger(2);
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    [consumer] = (await newConsumers(client, 1, 1_000_000_000)) as [Consumer];
    const now = new Date();
    const beginMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 20);
    await client.query(
      `insert into farebox.charges (amount_micros, spent_micros, balance_micros, id, consumer_id,
         developer, ledger, receipt_key, tool, metadata)
       select 1, n, 0, (lpad(to_hex($1::int8 + n * 5000), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid,
         uuidv7(), 1, 0, 1, 'search', ''
       from generate_series(1, ${MISPLACED}) n`,
      [beginMs],
    );
    await client.query(
      `insert into farebox.holds (amount_micros, held_micros, balance_micros, expires_at, id, consumer_id,
         developer, ledger, tool, metadata)
       select 1, 1, 1, now() + interval '1 hour', uuidv7(), uuidv7(), n, 0, 'search', ''
       from generate_series(1, ${HOLDS}) n`,
    );
  });
  after(async () => {
    await client.end();
    await ledger.drop();
  });

  it(`move, ${MISPLACED} of them, while no charge waits for all of them`, async () => {
    const moved = new AbortController();
    let charged = 0;
    const endedAt: number[] = [];
    const charge = async () => {
      while (!moved.signal.aborted) {
        const [outcome] = await post(ledger.database, [newDraft(consumer, 1)]);
        assert.equal(outcome?.kind, 'posted');
        endedAt.push(performance.now());
        charged += 1;
        await turn();
      }
    };
    const capture = async () => {
      let captures = 0;
      while (!moved.signal.aborted) {
        const developer = 1 + ((captures * 7_919) % HOLDS);
        const { rowCount } = await client.query(
          'update farebox.holds set captures = captures + 1 where developer = $1',
          [developer],
        );
        assert.equal(rowCount, 1);
        captures += 1;
      }
      return captures;
    };
    const charging = charge();
    const capturing = capture();
    const beganAt = performance.now();
    const { made, putOff } = await ensureChargePartitions(ledger.url, Date.now());
    const movedMs = performance.now() - beganAt;
    moved.abort();
    await charging;
    const captures = await capturing;
    assert.deepEqual(putOff, []);
    assert.ok(made.length >= 8 && charged > 0 && captures > 0);
    const partOf = (at: number) => Math.floor((at - beganAt) / (movedMs / PARTS));
    const parts = new Set(endedAt.map(partOf).filter((part) => part >= 0 && part < PARTS));
    assert.ok(parts.size > PARTS / 2, `charges in ${[...parts].join()} of ${PARTS} parts`);
    assert.deepEqual(await countsOf('charges', 'spent_micros'), {
      rest: 0,
      rows: MISPLACED + charged,
      sum: (MISPLACED * (MISPLACED + 1) + charged * (charged + 1)) / 2,
    });
    assert.deepEqual(await countsOf('holds', 'captures'), { rest: 0, rows: HOLDS, sum: captures });
  });

  async function countsOf(table: 'charges' | 'holds', column: string) {
    const { rows } = await client.query<Record<string, string>>(
      `select count(*) as rows, sum(${column}) as sum,
         count(*) filter (where tableoid = 'farebox.${table}_rest'::regclass) as rest
       from farebox.${table}`,
    );
    return Object.fromEntries(Object.entries(rows[0] ?? {}).map(([name, n]) => [name, Number(n)]));
  }
});

describe('rows in a default partition', () => {
  let ledger: TestLedger;
  let client: Client;
  let superuser: Client;

  before(async () => {
    ledger = await openMigratedLedger(2);
    [client, superuser] = [ledger.url, asSuperuser(ledger.url)].map(
      (connectionString) => new Client({ connectionString }),
    ) as [Client, Client];
    await Promise.all([client.connect(), superuser.connect()]);
    await client.query(
      `insert into farebox.holds (amount_micros, held_micros, balance_micros, expires_at, id, consumer_id,
         developer, ledger, tool, metadata)
       select 1, 1, 1, now() + interval '1 hour', uuidv7(interval '-40 days'), uuidv7(), n, 0, 'search', ''
       from generate_series(1, ${MISPLACED}) n`,
    );
  });
  after(async () => {
    await client?.end();
    await superuser?.end();
    await ledger?.drop();
  });

  it('are all there after a process lost its turn and another one began', async () => {
    const copy = async () =>
      (
        await client.query<{ oid: number; name: string }>(
          `select oid, relname as name from pg_class
           where relnamespace = 'farebox_moving'::regnamespace and relkind = 'r' and relname ~ '^holds_2'
           order by relname`,
        )
      ).rows[0];
    const isCopied = async () => {
      const { name } = (await copy()) ?? {};
      if (name === undefined) return false;
      const { rows } = await client.query<{ n: number }>(
        `select count(*)::int as n from farebox_moving.${name}`,
      );
      return rows[0]?.n === MISPLACED;
    };
    // An old snapshot, for whose end the first one waits once it has copied everything.
    const reader = new Client({ connectionString: ledger.url });
    await reader.connect();
    await reader.query('begin transaction isolation level repeatable read');
    await reader.query('select count(*) from farebox.accounts');
    const first = ensureChargePartitions(ledger.url, Date.now());
    await until(isCopied);
    const before = await copy();
    // And a lock that the second one waits for before it copies anything, and then waits to ask for again.
    await reader.query('lock table farebox.holds_rest in row exclusive mode');
    await superuser.query(
      `select pg_terminate_backend(pid, 10000) from pg_locks where locktype = 'advisory' and granted
         and database = (select oid from pg_database where datname = current_database())`,
    );
    const second = ensureChargePartitions(ledger.url, Date.now());
    const isWaiting = async () => {
      const { rowCount } = await client.query(
        `select from pg_locks where relation = 'farebox.holds_rest'::regclass and not granted`,
      );
      return rowCount !== 0;
    };
    await until(async () => (await copy())?.oid !== before?.oid && (await isWaiting()));
    await until(async () => !(await isWaiting()));
    await reader.query('commit');
    await Promise.allSettled([first, second]);
    await reader.end();
    const { rows } = await client.query('select count(*)::int as n from farebox.holds');
    assert.deepEqual(rows, [{ n: MISPLACED }]);
  });
});
