/** `farebox reconcile` that cannot check says why, and exits with 2. */
import assert from 'node:assert/strict';
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
