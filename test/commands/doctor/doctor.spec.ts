/** What `farebox doctor` prints and its exit codes. Its findings are tested beside this file, by part. */
import assert from 'node:assert/strict';
import { checkNames, LEDGER_PARTS } from '../../../src/store/doctor/ledger-checks.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { startSimulator, type Simulator } from '../../support/simulators.ts';
import { farebox, type Environment } from '../../support/stack.ts';
import { openPlantedBooks, type PlantedBooks } from './planted-books.ts';

interface Failure {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

describe('farebox doctor', () => {
  let simulator: Simulator;
  let books: PlantedBooks;
  let env: Environment;

  before(async () => {
    simulator = await startSimulator();
  });
  beforeEach(async () => {
    books = await openPlantedBooks(1, simulator.env);
    ({ env } = books);
  });
  afterEach(() => books.close());
  after(() => simulator?.stop());

  const doctor = (args: readonly string[], its = env) => farebox(['doctor', ...args], { env: its });

  async function failing(args: readonly string[], its = env): Promise<Failure> {
    const failed = await doctor(args, its).catch((error: Failure) => error);
    assert.ok(typeof failed !== 'string', 'it exits with 0');
    return failed;
  }

  /** Without the checkout, whose payment Stripe does not have. */
  async function leaveManualTopUp(): Promise<void> {
    await books.plant(books.accounts[0]!, [
      `delete from farebox.movements where id in (':checkoutCredit', ':adjustment')`,
      `delete from farebox.lots where movement_id in (':checkoutCredit', ':adjustment')`,
      `delete from farebox.top_ups where id = ':checkout'`,
      `update farebox.charges set balance_micros = 10000000 - spent_micros`,
      `update farebox.consumers set credited_micros = 10000000`,
    ]);
  }

  it('lists the checks that passed and exits with 0', async () => {
    await leaveManualTopUp();
    const printed = await doctor([]);
    assert.match(printed, /^All checks passed:\n {2}the schema matches this release\n/);
    assert.match(printed, /\n {2}spent is the sum of charges\n/);
    assert.match(printed, /\n {2}the ledger agrees with the processor\n$/);
    assert.deepEqual(await books.examine(), { ok: true, findings: [] });
    assert.doesNotMatch(await doctor(['--no-processor']), /agrees with the processor/);
  });

  it('checks only the parts that are named', async () => {
    const all = await doctor(['--no-processor']);
    assert.deepEqual(
      checksOf(all),
      LEDGER_PARTS.flatMap((part) => checkNames(part, { reconcileEverySeconds: 900 })),
    );
    assert.deepEqual(checksOf(await doctor(['--only', 'top-ups,balances'])), [
      ...checkNames('balances'),
      ...checkNames('top-ups'),
    ]);
  });

  it('refuses an unknown part, and lists the parts in its help', async () => {
    const { stderr } = await failing(['--only', 'balances,movements']);
    assert.match(stderr, /Unknown part movements\. Use schema, balances, top-ups, /);
    const help = await doctor(['--help']);
    for (const part of LEDGER_PARTS) assert.match(help, new RegExp(`^ {2}${part} `, 'm'));
  });

  it('refuses a time that is none', async () => {
    const { stderr } = await failing(['--since', 'monday']);
    assert.match(stderr, /It must be a time, such as 2026-11-01/);
  });

  it('prints a line for each finding, with its numbers, and exits with 1', async () => {
    const [planted] = books.accounts;
    await books.sql.query('update farebox.consumers set credited_micros = credited_micros + 1');
    const { code, stdout } = await failing(['--no-processor']);
    assert.equal(code, 1);
    assert.deepEqual(stdout.trimEnd().split('\n'), [
      '2 checks failed:',
      `credited is the sum of movements: consumer ${planted?.consumer}, credited 35000001, movements 35000000`,
      `lots are contiguous and end at credited: consumer ${planted?.consumer}, ` +
        'lots of 35000000 end at 35000000, 0 gaps, credited 35000001',
    ]);
  });

  it('names the first 20 of many, and gives the total', async () => {
    await books.sql.query(
      `insert into farebox.consumers (ledger, id) select 0, uuidv7() from generate_series(1, 33)`,
    );
    const { findings } = await books.examine('--only', 'balances');
    assert.deepEqual(
      [findings.length, new Set(findings.map(({ offenders }) => offenders))],
      [20, new Set([33])],
    );
    const { stdout } = await failing(['--only', 'balances']);
    assert.match(
      stdout,
      /\neach account has one consumer, and each consumer one account: and 13 more\n$/,
    );
  });

  it('exits with 2 and says why, as JSON when asked, when it cannot reach the database', async () => {
    const away = { ...env, DATABASE_URL: 'postgres://farebox@127.0.0.1:1/farebox' };
    const { code, stdout } = await failing(['--json'], away);
    assert.equal(code, 2);
    const { ok, error } = JSON.parse(stdout) as { ok: null; error: { message: string } };
    assert.equal(ok, null);
    assert.match(error.message, /ECONNREFUSED/);
  });

  it('exits with 2 and says why, as JSON when asked, when a file of a secret cannot be read', async () => {
    const { DATABASE_URL: _, ...rest } = env;
    const unreadable = { ...rest, DATABASE_URL_FILE: '/nowhere/url' };
    const { code, stdout } = await failing(['--json'], unreadable);
    assert.equal(code, 2);
    const { ok, error } = JSON.parse(stdout) as { ok: null; error: { message: string } };
    assert.equal(ok, null);
    assert.match(error.message, /^DATABASE_URL_FILE names a file that cannot be read/);
    assert.match(
      (await failing([], unreadable)).stderr,
      /^farebox: could not check: DATABASE_URL_/,
    );
  });

  it('exits with 2 and names Stripe and the reason when it cannot reach Stripe', async () => {
    const { code, stdout, stderr } = await failing([], {
      ...env,
      STRIPE_API_BASE: 'http://127.0.0.1:1',
    });
    assert.equal(code, 2);
    assert.equal(stdout, '');
    assert.match(
      stderr,
      /^farebox: could not check: Stripe could not be reached: .*127\.0\.0\.1:1/,
    );
  });

  it('keeps the last result of Temporal without its address, and exits with 2 if only that is asked for', async () => {
    await leaveManualTopUp();
    const finding = { check: 'c', subject: 's', detail: 'd', offenders: 1 };
    await books.sql.query(
      `insert into farebox.examinations (part, ended_at, findings) values ('temporal', now(), $1)`,
      [JSON.stringify([finding])],
    );
    const stored = async () => {
      const { rows } = await books.sql.query(
        `select findings from farebox.examinations where part = 'temporal'`,
      );
      return rows[0]?.findings;
    };
    await doctor([]);
    assert.deepEqual(await stored(), [finding]);
    for (const [reason, ...args] of [
      [/^Temporal cannot be checked: TEMPORAL_ADDRESS is not set/, 'balances,temporal'],
      [/leaves nothing to check/, 'temporal', '--no-processor'],
    ] as const) {
      const { code, stdout } = await failing(['--json', '--only', ...args]);
      assert.equal(code, 2);
      const { ok, error } = JSON.parse(stdout) as { ok: null; error: { message: string } };
      assert.equal(ok, null);
      assert.match(error.message, reason);
    }
    assert.deepEqual(await stored(), [finding]);
  });

  it('shows and stores what it found before it could not reach Stripe, and exits with 1', async () => {
    await books.sql.query('update farebox.consumers set credited_micros = credited_micros + 1');
    const away = { ...env, STRIPE_API_BASE: 'http://127.0.0.1:1' };
    const { code, stdout, stderr } = await failing([], away);
    assert.equal(code, 1);
    assert.match(stdout, /^2 checks failed:\ncredited is the sum of movements: /);
    assert.match(stderr, /^farebox: could not check the rest: Stripe could not be reached: /);
    const inJson = await failing(['--json'], away);
    assert.equal(inJson.code, 1);
    const printed = JSON.parse(inJson.stdout) as {
      ok: boolean;
      findings: readonly unknown[];
      error: { message: string };
    };
    assert.equal(printed.ok, false);
    assert.equal(printed.findings.length, 2);
    assert.match(printed.error.message, /^Stripe could not be reached/);
    const { rows } = await books.sql.query(
      `select jsonb_array_length(findings) as findings from farebox.examinations where part = 'balances'`,
    );
    assert.deepEqual(rows, [{ findings: 2 }]);
  });

  it('compares with Stripe while Temporal is away, and says that the other parts passed', async () => {
    const away = { ...env, TEMPORAL_ADDRESS: '127.0.0.1:1' };
    const { code, stdout, stderr } = await failing([], away);
    assert.equal(code, 1);
    assert.match(stdout, /^1 check failed:\nthe ledger agrees with the processor: top-up /);
    assert.match(
      stderr,
      /^farebox: could not check the rest: Temporal did not respond at 127\.0\.0\.1:1\.\n$/,
    );
    await leaveManualTopUp();
    const agreed = await failing([], away);
    assert.equal(agreed.code, 2);
    assert.equal(
      agreed.stderr,
      'farebox: could not check: Temporal did not respond at 127.0.0.1:1. The other parts passed.\n',
    );
    const neither = await failing([], { ...away, STRIPE_API_BASE: 'http://127.0.0.1:1' });
    assert.equal(neither.code, 2);
    assert.match(
      neither.stderr,
      /^farebox: could not check: Temporal did not respond .+\. Stripe could not be reached: .+\. The other parts passed\.\n$/,
    );
  });

  it('exits with 2 and says why when the mail server does not accept us, and passes when it does', async () => {
    await leaveManualTopUp();
    const mails = await startMailServer();
    try {
      const accepted = { ...env, SMTP_URL: mails.urlFor('p@ss') };
      const passed = await doctor([], accepted);
      assert.match(passed, /\n {2}the mail server accepts SMTP_URL\n$/);
      assert.doesNotMatch(await doctor(['--no-processor'], accepted), /mail server/);
      assert.equal(mails.mails.length, 0);
      const { rows } = await books.sql.query(
        `select part from farebox.examinations where part in ('processor', 'mail')`,
      );
      assert.deepEqual(rows, [{ part: 'processor' }]);
      const refused = await failing([], { ...env, SMTP_URL: mails.urlFor('an old password') });
      assert.equal(refused.code, 2);
      assert.match(
        refused.stderr,
        /^farebox: could not check: The mail server 127\.0\.0\.1:\d+ does not accept us: .*wrong user or password\. The other parts passed\.\n$/,
      );
    } finally {
      await mails.stop();
    }
    const away = await failing(['--only', 'mail'], { ...env, SMTP_URL: 'smtp://127.0.0.1:1' });
    assert.equal(away.code, 2);
    assert.match(away.stderr, /The mail server 127\.0\.0\.1:1 does not accept us: .*ECONNREFUSED/);
    const unset = await failing(['--only', 'mail']);
    assert.equal(unset.code, 2);
    assert.match(unset.stderr, /The mail server cannot be checked: SMTP_URL is not set/);
  });

  it('names a missing table, although the checks that read it cannot run', async () => {
    await books.sql.query('alter table farebox.webhook_deliveries rename to moved');
    const { code, stdout, stderr } = await failing(['--no-processor']);
    assert.equal(code, 1);
    assert.match(stdout, /webhook_deliveries/);
    assert.match(stderr, /^farebox: could not check the rest: .*does not exist/);
  });
});

/** The checks that passed. */
function checksOf(printed: string): string[] {
  return printed
    .split('\n')
    .slice(1, -1)
    .map((line) => line.trim());
}
