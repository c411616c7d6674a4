/** What operators are shown of the payments of a difference. */
import assert from 'node:assert/strict';
import { paymentsText, paymentToOpen } from '../../src/domain/difference.ts';

const PAYMENTS = ['pi_credited', 'pi_other'];

describe('the payments of a difference', () => {
  it('are listed with the credited one marked', () => {
    assert.equal(paymentsText(PAYMENTS, 'pi_credited'), 'pi_credited (credited), pi_other');
    assert.equal(paymentsText(['pi_other'], null), 'pi_other');
    assert.equal(paymentsText([], 'pi_credited'), 'no payment');
  });

  it('are opened at the one that is not credited, unless its reversals differ', () => {
    assert.equal(paymentToOpen('paid_twice', PAYMENTS, 'pi_credited'), 'pi_other');
    assert.equal(paymentToOpen('payment_mismatch', PAYMENTS, 'pi_credited'), 'pi_other');
    assert.equal(paymentToOpen('reversals', PAYMENTS.toReversed(), 'pi_credited'), 'pi_credited');
    assert.equal(paymentToOpen('not_credited', ['pi_other'], null), 'pi_other');
    assert.equal(paymentToOpen('not_paid', [], null), null);
  });
});
