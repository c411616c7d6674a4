/** Refunds of charges, by the developer that made the charge, in full or in part, until nothing is left. */
import { ApiError } from '../../../domain/errors.ts';
import { wireId, uuidTime } from '../../../domain/ids.ts';
import { dollarsOf, formatDollars, LARGEST_AMOUNT } from '../../../domain/money.ts';
import type { RefundBody, RefundReply } from '../../../schemas/charges.ts';
import { refundCharge, type ChargeRefund } from '../../../store/charges/refund-charge.ts';
import { amountOf, type AmountRule } from '../../amounts.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { idIn } from '../../look-ups.ts';
import { refuseUnknownCharge } from '../../refuse-archived.ts';
import { keyReused } from '../../repeated-requests.ts';
import { REPLAYED } from '../../respond.ts';

/** No maximum here: the charge's own amount is the limit. */
const REFUNDABLE: AmountRule = {
  accepts: (amount) => amount > 0,
  says: 'more than $0, with at most six decimals; omit it to refund all that is left',
};

/** 201; `Idempotency-Replayed: true` when this key has already made the refund. */
export async function postChargeRefund(
  api: Api,
  { caller, params, body, idempotencyKey }: Request<RefundBody>,
): Promise<Reply<RefundReply, 201>> {
  const askedMicros =
    body.amount === undefined ? null : amountOf('amount', body.amount, REFUNDABLE);
  const chargeId = idIn('charge', params);
  if (chargeId === undefined) return refuseUnknownCharge(api, chargeId);
  const { developerNumber } = caller;
  const request = { developerNumber, chargeId, askedMicros, idempotencyKey };
  const result = await refundCharge(api.database, request);
  switch (result.kind) {
    case 'refunded':
      return { status: 201, body: wireRefund(result.refund) };
    case 'known':
      return { status: 201, body: wireRefund(result.refund), headers: REPLAYED };
    case 'unknown_charge':
      return refuseUnknownCharge(api, chargeId);
    case 'key_reused':
      throw keyReused(
        'This Idempotency-Key was used for a refund of another amount; a new refund needs a new key.',
      );
    case 'too_much_credited':
      throw new ApiError(
        'invalid_amount',
        `The sum of all credits to the consumer would exceed ${LARGEST_AMOUNT}.`,
      );
    case 'exceeds_charge': {
      const refundable = dollarsOf(result.refundableMicros);
      throw new ApiError(
        'refund_exceeds_charge',
        refundable === 0
          ? 'The charge has been refunded in full.'
          : `Only ${formatDollars(result.refundableMicros)} of the charge is left to refund.`,
        { ...(askedMicros !== null && { param: 'amount' }), facts: { refundable } },
      );
    }
  }
}

function wireRefund(refund: ChargeRefund): RefundReply {
  return {
    id: wireId('chargeRefund', refund.id),
    chargeId: wireId('charge', refund.chargeId),
    amount: dollarsOf(refund.amountMicros),
    refunded: dollarsOf(refund.refundedMicros),
    createdAt: uuidTime(refund.id),
  };
}
