/** What operators change: a balance by an adjustment, and a top-up by a refund. Each with its reason and its author. */
import { randomUUID } from 'node:crypto';
import { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import { isTest } from '../../../domain/mode.ts';
import {
  dollarsOf,
  formatDollars,
  isWholeCents,
  MANUAL_MICROS_MAX,
} from '../../../domain/money.ts';
import type {
  AdjustmentBody,
  AdjustmentReply,
  TopUpRefundBody,
  TopUpRefundReply,
} from '../../../schemas/operators.ts';
import { adjustBalance } from '../../../store/balance/adjustments.ts';
import { requestRefund } from '../../../store/top-ups/request-refund.ts';
import { findTopUp } from '../../../store/top-ups/top-ups.ts';
import { amountOf, balanceTooLarge, type AmountRule } from '../../amounts.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { idIn, noSuch } from '../../look-ups.ts';
import { keyReused } from '../../repeated-requests.ts';
import { REPLAYED } from '../../respond.ts';
import type { Api } from '../../services.ts';
import { accountOf } from './accounts.ts';

const ADJUSTMENT: AmountRule = {
  accepts: (amount) => amount !== 0 && Math.abs(amount) <= MANUAL_MICROS_MAX,
  says: `other than 0, at most ${dollarsOf(MANUAL_MICROS_MAX)} dollars, with at most six decimals`,
};
const WHOLE_CENTS: AmountRule = {
  accepts: (amount) => amount > 0 && isWholeCents(amount),
  says: 'more than 0, in whole cents',
};

export async function postAdjustment(
  api: Api,
  request: Request<AdjustmentBody>,
): Promise<Reply<AdjustmentReply, 201>> {
  const account = await accountOf(api, request.params);
  const amountMicros = amountOf('amount', request.body.amount, ADJUSTMENT);
  const reason = request.body.reason.trim();
  const by = { ...authorOf(request), accountId: account.id };
  const result = await adjustBalance(api.database, account, { amountMicros, reason }, by);
  switch (result.kind) {
    case 'adjusted':
      return {
        status: 201,
        body: {
          amount: dollarsOf(amountMicros),
          balance: dollarsOf(result.balanceMicros),
          debt: dollarsOf(result.debtMicros),
        },
        ...(result.isReplay && { headers: REPLAYED }),
      };
    case 'insufficient_balance':
      throw new ApiError(
        'insufficient_balance',
        `The balance is ${formatDollars(result.balanceMicros)} and never goes below zero.`,
        { facts: { balance: dollarsOf(result.balanceMicros) } },
      );
    case 'too_much_credited':
      throw balanceTooLarge();
    case 'key_reused':
      throw keyReused(OTHER_CHANGE);
  }
}

export async function postTopUpRefund(
  api: Api,
  request: Request<TopUpRefundBody>,
): Promise<Reply<TopUpRefundReply, 201>> {
  const topUpId = idIn('topUp', request.params);
  const topUp = topUpId === undefined ? null : await findTopUp(api.database, topUpId);
  if (!topUp || isTest(topUp)) throw noSuch('top-up');
  const { amount } = request.body;
  const asked = amount === undefined ? undefined : amountOf('amount', amount, WHOLE_CENTS);
  const reason = request.body.reason.trim();
  const by = { ...authorOf(request), accountId: topUp.accountId, reason };
  const result = await requestRefund(api.database, topUp.id, asked, by);
  switch (result.kind) {
    case 'requested':
      return {
        status: 201,
        body: {
          id: wireId('topUpRefund', result.refundId),
          topUpId: wireId('topUp', topUp.id),
          amount: dollarsOf(result.amountMicros),
        },
        ...(result.isReplay && { headers: REPLAYED }),
      };
    case 'not_found':
      throw noSuch('top-up');
    case 'no_payment':
      throw new ApiError(
        'top_up_not_refundable',
        'This top-up was credited manually, so there is no payment to refund. Adjust the balance instead.',
      );
    case 'not_refundable':
      throw new ApiError(
        'top_up_not_refundable',
        `This top-up is ${result.status.replaceAll('_', ' ')}. Only a credited one without a dispute can be refunded.`,
      );
    case 'exceeds_unspent':
      throw new ApiError(
        'invalid_amount',
        result.refundableMicros === 0
          ? 'This top-up has been spent in full, so there is nothing left to refund.'
          : `Only ${formatDollars(result.refundableMicros)} of this top-up is unspent and can be refunded.`,
        { param: 'amount', facts: { refundable: dollarsOf(result.refundableMicros) } },
      );
    case 'key_reused':
      throw keyReused(OTHER_CHANGE);
  }
}

const OTHER_CHANGE = 'This Idempotency-Key belongs to another change that you made.';

/** Without a key, a request that is repeated is another change. */
function authorOf({ caller, idempotencyKey = randomUUID() }: Request) {
  return { operatorAccountId: caller.accountId, idempotencyKey };
}
