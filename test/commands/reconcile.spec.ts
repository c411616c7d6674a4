/** `farebox reconcile` that cannot check says why, and exits with 2. With `--settle`, it exits like what writes. */
import assert from 'node:assert/strict';
import { wireId } from '../../src/domain/ids.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { newPayer } from '../support/payer.ts';
import { farebox } from '../support/stack.ts';
import { openTopUpHarness, type TopUpHarness } from '../support/top-up-harness.ts';

describe('farebox reconcile while Stripe is down', () => {
  let harness: TopUpHarness;

  before(async () => {
    harness = await openTopUpHarness({ STEP_RETRY_MS: '10' });
    await harness.startWorker();
    const fault = { method: 'GET', path: '/v1/balance_transactions', kind: 'error', status: 500 };
    await harness.control('faults', { ...fault, times: 1_000 });
  });
  after(() => harness?.close());

  it('says what Stripe answered', async () => {
    await assert.rejects(farebox(['reconcile'], { env: harness.env }), {
      code: 2,
      stderr:
        /^farebox: could not check: The payment processor refused or did not respond \(StripeAPIError, status 500\b.*\): .+\n$/,
    });
  });

  it('says it in JSON', async () => {
    await assert.rejects(
      farebox(['reconcile', '--json'], { env: harness.env }),
      ({ stdout, code }: { stdout: string; code: number }) => {
        assert.equal(code, 2);
        const { ok, error } = JSON.parse(stdout) as { ok: null; error: { message: string } };
        assert.equal(ok, null);
        assert.match(error.message, /StripeAPIError, status 500/);
        return true;
      },
    );
  });
});

describe('farebox reconcile --settle', () => {
  let ledger: TestLedger;
  let topUp: string;

  before(async () => {
    ledger = await openTestLedger();
    topUp = wireId('topUp', await (await newPayer(ledger.database)).topUp(20_000_000));
  });
  after(() => ledger?.drop());

  const reconcile = (args: readonly string[]) =>
    farebox(['reconcile', ...args], { env: { DATABASE_URL: ledger.url } });

  it('exits with 1 when it is refused', async () => {
    await assert.rejects(reconcile(['--settle', topUp, '--reason', 'kept']), {
      code: 1,
      stderr: `farebox: Nothing differs about ${topUp} that is not settled.\n`,
    });
    await assert.rejects(reconcile(['--settle', 'x', '--reason', 'kept', '--json']), {
      code: 1,
      stdout: '',
      stderr: 'farebox: x is not the id of a top-up.\n',
    });
  });

  for (const [args, option, needed] of [
    [['--settle', 'tu_x'], '--settle <top-up>', '--reason <text>'],
    [['--kind', 'not_paid'], '--kind <kind>', '--settle <top-up>'],
    [['--reason', 'kept'], '--reason <text>', '--settle <top-up>'],
    [['--after-restore', '--reason', 'kept'], '--reason <text>', '--settle <top-up>'],
  ] as const) {
    it(`is wrong usage as ${args.join(' ')}`, async () => {
      await assert.rejects(reconcile(args), {
        code: 2,
        stderr: `error: option '${option}' needs option '${needed}'\n`,
      });
    });
  }
});
