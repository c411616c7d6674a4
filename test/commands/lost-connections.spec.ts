/** Commands that lose the connection during their COMMIT: they say that it may have happened, and what to do. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { ifLost, withDatabase } from '../../src/commands/database-command.ts';
import { OutcomeUnknownError } from '../../src/commands/outcome-unknown.ts';
import { wireId } from '../../src/domain/ids.ts';
import { asMicros } from '../../src/domain/money.ts';
import { createAccounts } from '../../src/store/accounts/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { endAll } from '../support/end-all.ts';
import { startFaultyLine, type FaultyLine } from '../support/faulty-line.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { newPayer, type Payer } from '../support/payer.ts';
import { farebox, until, type Environment } from '../support/stack.ts';

/** Held by the test while a COMMIT is to wait. */
const LOCK = 4_712;

describe('a command that loses its connection during the COMMIT', () => {
  let ledger: TestLedger;
  let client: Client;
  let line: FaultyLine;
  let env: Environment;
  let lined: Environment;
  let payer: Payer;
  let topUp: string;

  before(async () => {
    ledger = await openTestLedger();
    client = new Client({ connectionString: ledger.url });
    await client.connect();
    await client.query(`
      create function public.wait() returns trigger language plpgsql as $$
      begin
        perform set_config('lock_timeout', '60s', true);
        perform pg_advisory_xact_lock_shared(${LOCK});
        return null;
      end $$
    `);
    const url = new URL(ledger.url);
    line = await startFaultyLine({ host: url.hostname, port: Number(url.port) });
    url.port = String(line.port);
    env = { DATABASE_URL: ledger.url, MASTER_SECRET: 'a-master-secret-of-at-least-32-characters' };
    lined = { ...env, DATABASE_URL: url.href };
    payer = await newPayer(ledger.database);
    topUp = wireId('topUp', await payer.topUp(20_000_000));
  });
  after(() =>
    endAll(
      () => proveBooks(env, { processor: false }),
      () => line?.stop(),
      () => client?.end(),
      () => ledger?.drop(),
    ),
  );

  /** While a transaction that inserts into the table waits in its COMMIT, `damage` happens. Then it commits. */
  async function duringCommit<T>(
    table: string,
    start: () => Promise<T>,
    damage: () => unknown,
  ): Promise<T> {
    await client.query(`
      create constraint trigger zz_wait after insert on ${table}
      deferrable initially deferred for each row execute function public.wait()
    `);
    await client.query(`select pg_advisory_lock(${LOCK})`);
    const unlock = () => client.query('select pg_advisory_unlock_all()');
    const isWaiting = async (granted: boolean) => {
      const { rowCount } = await client.query(
        `select from pg_locks where locktype = 'advisory' and objid = ${LOCK} and mode = 'ShareLock'
          and granted = ${granted}
          and database = (select oid from pg_database where datname = current_database())`,
      );
      return rowCount !== 0;
    };
    try {
      const started = start();
      // It may reject before the test gets to it, below.
      started.catch(() => {});
      await until(() => isWaiting(false));
      await damage();
      await unlock();
      return await started;
    } finally {
      await unlock();
      await until(async () => !(await isWaiting(false)) && !(await isWaiting(true)));
      line.mend();
      await client.query(`drop trigger zz_wait on ${table}`);
    }
  }

  /** What it printed as an error. It committed, unknown to the command. */
  async function cut(table: string, args: readonly string[]): Promise<string> {
    const run = () =>
      farebox(args, { env: lined }).then(
        (stdout) => ({ code: 0, stdout, stderr: '' }),
        (error: unknown) => error as { code: number; stdout: string; stderr: string },
      );
    const ended = await duringCommit(table, run, () => line.damage({ kind: 'cut' }));
    assert.deepEqual([ended.code, ended.stdout], [3, ''], ended.stderr);
    assert.match(
      ended.stderr,
      /^farebox: The connection to PostgreSQL was lost before it confirmed /,
    );
    return ended.stderr;
  }

  const account = () => wireId('account', payer.accountId);
  const refunds = async () => {
    const { rowCount } = await client.query(`select from farebox.reversals where kind = 'refund'`);
    return rowCount;
  };

  it('refunds once when it is repeated with its idempotency key', async () => {
    const args = ['refund', topUp, '--amount', '5', '--idempotency-key', 'ticket-1', '--json'];
    const said = await cut('farebox.reversals', args);
    assert.match(
      said,
      /Repeat the command with the same --idempotency-key: it refunds only once\.\n$/,
    );
    assert.equal(await refunds(), 1);
    const repeated = await farebox(args, { env });
    assert.equal((JSON.parse(repeated) as { amount: number }).amount, 5);
    assert.equal(await farebox(args, { env }), repeated);
    const any = ['refund', topUp, '--idempotency-key', 'ticket-1', '--json'];
    assert.equal(await farebox(any, { env }), repeated, 'the answer of the first one');
    assert.equal(await refunds(), 1);
  });

  it('says where to look for a refund or an adjustment without a key', async () => {
    const refund = await cut('farebox.reversals', ['refund', topUp, '--amount', '1']);
    assert.match(refund, /Look for it in `farebox audit` before you repeat the command/);
    assert.match(await farebox(['audit'], { env }), /refund\.requested/);
    const reason = ['--reason', 'goodwill'];
    const adjust = await cut('farebox.movements', ['account', 'adjust', account(), '2', ...reason]);
    const [, look = ''] =
      /Look for it in `farebox (audit --account \S+)` before/.exec(adjust) ?? [];
    assert.match(await farebox(look.split(' '), { env }), /balance\.adjusted/);
  });

  const COMMANDS: Readonly<Record<string, readonly [string, () => readonly string[], RegExp]>> = {
    'account create': [
      'farebox.accounts',
      () => ['--email', 'lost@example.com'],
      /Run `farebox account show lost@example\.com`\. If it exists, it has keys/,
    ],
    'account create --count': [
      'farebox.accounts',
      () => ['2', '--email', 'n@example.com', '--from', '7'],
      /printed 0 of 2 .* show n\+7@example\.com`.* with --from 7 --count 2\. .* up to n\+8@example\.com/,
    ],
    'key create': [
      'farebox.api_keys',
      () => [account(), '--kind', 'consumer'],
      /Look for it in `farebox key list acct_\w+`, and revoke it/,
    ],
    'budget create': [
      'farebox.budget_details',
      () => [account(), '--name', 'research', '--limit', '5'],
      /Look for it in `farebox budget list acct_\w+`/,
    ],
    'webhook add': [
      'farebox.webhook_endpoints',
      () => [account(), 'https://example.com/hook'],
      /Look for it in `farebox webhook list acct_\w+`/,
    ],
    'account low-balance': [
      'farebox.thresholds',
      () => [account(), '--threshold', '3'],
      /Repeat the command: it sets the same again\./,
    ],
  };
  for (const [name, [table, args, advice]] of Object.entries(COMMANDS)) {
    it(`says what to do: ${name}`, async () => {
      assert.match(await cut(table, [...name.split(' '), ...args()]), advice);
    });
  }

  it('says what to do: reconcile --settle', async () => {
    await client.query(
      `insert into farebox.differences
         (top_up_id, kind, processor_micros, ledger_micros, payment_intent_ids)
       select id, 'payment_mismatch', 25000000, 0, '{}' from farebox.top_ups`,
    );
    const settle = ['reconcile', '--settle', topUp, '--reason', 'kept'];
    const said = await cut('farebox.settled_differences', settle);
    assert.match(
      said,
      /Repeat the command\. If nothing differs that is not settled, it was settled/,
    );
    await assert.rejects(farebox(settle, { env }), { code: 1, stderr: /Nothing differs about/ });
  });

  it('says so of a PostgreSQL that is silent', async () => {
    const before = process.env['DATABASE_URL'];
    process.env['DATABASE_URL'] = lined['DATABASE_URL'];
    try {
      const unanswered = duringCommit('farebox.accounts', createSilently, () =>
        line.damage({ kind: 'half_open' }),
      );
      await assert.rejects(unanswered, (error: Error) => {
        assert.ok(error instanceof OutcomeUnknownError, String(error));
        assert.match(error.message, / Look\.$/);
        return true;
      });
    } finally {
      if (before === undefined) delete process.env['DATABASE_URL'];
      else process.env['DATABASE_URL'] = before;
    }
  });
});

/** As a command does, but with less patience. */
function createSilently(): Promise<unknown> {
  const account = { email: 'silent@example.com', balanceMicros: asMicros(0) };
  return withDatabase(
    'nowhere',
    (database, config) => createAccounts(database, [account], config),
    {
      silenceMsMax: 4_000,
    },
  ).catch(ifLost('Look.'));
}
