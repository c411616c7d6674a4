/** A consumer's balance and usage (specification section 4.1). */
import { DAY_MS } from '../../../domain/durations.ts';
import { wireId } from '../../../domain/ids.ts';
import { parseTime } from '../../../domain/iso-time.ts';
import { dollarsOf } from '../../../domain/money.ts';
import type {
  BalanceReply,
  UsageByDayQuery,
  UsageByDayReply,
  UsageReply,
} from '../../../schemas/balance.ts';
import type { ConsumerChargeReply, UsageQuery } from '../../../schemas/charges.ts';
import { listCreditsOfCharge } from '../../../store/balance/credits-of-charge.ts';
import { findAutoTopUp } from '../../../store/top-ups/auto-top-ups.ts';
import {
  findConsumerCharge,
  listConsumerCharges,
  sumConsumerUsage,
} from '../../../store/charges/list-charges.ts';
import { listUsageByDay } from '../../../store/charges/usage-by-day.ts';
import { getCounters } from '../../../store/balance/consumers.ts';
import type { Api } from '../../services.ts';
import { refuseInside } from '../earnings/earnings.ts';
import { listedCharge } from '../charges/charges.ts';
import type { Reply, Request, ScanApi } from '../../endpoint.ts';
import { chargeFilterOf, timeRangeOf } from '../../filters.ts';
import { invalidField } from '../../invalid-field.ts';
import { idIn } from '../../look-ups.ts';
import { listPage } from '../../pagination.ts';
import { refuseArchivedRange, refuseUnknownCharge } from '../../refuse-archived.ts';

export async function getBalance(api: Api, { caller }: Request): Promise<Reply<BalanceReply>> {
  const [{ balanceMicros, debtMicros, heldMicros }, autoTopUp] = await Promise.all([
    getCounters(api.database, caller),
    findAutoTopUp(api.database, caller),
  ]);
  return {
    status: 200,
    body: {
      balance: dollarsOf(balanceMicros),
      debt: dollarsOf(debtMicros),
      held: dollarsOf(heldMicros),
      consumerId: wireId('consumer', caller.consumerId),
      autoTopUp: { status: autoTopUp?.status ?? 'off', reason: autoTopUp?.reason ?? null },
    },
  };
}

/**
 * Newest first. `total` covers all matches, so it is the same on every page: charges less refunds, each counted at its
 * own time. So the totals of two months add up to the total of both.
 */
export async function getUsage(
  api: ScanApi,
  { caller, query }: Request<undefined, UsageQuery>,
): Promise<Reply<UsageReply>> {
  await refuseArchivedRange(api, timeRangeOf(query));
  const filter = chargeFilterOf(query);
  const { rows, hasMore, nextCursor } = await listPage(query, 'charge', (page) =>
    listConsumerCharges(api.database, caller, filter, page),
  );
  const total = await sumConsumerUsage(api.database, api.closedCharges, caller, filter);
  const charges = rows.map((charge) => listedCharge(api, charge));
  return { status: 200, body: { charges, total: dollarsOf(total), hasMore, nextCursor } };
}

/** With the credits that paid for it. */
export async function getUsageCharge(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<ConsumerChargeReply>> {
  const id = idIn('charge', params);
  const found = id && (await findConsumerCharge(api.database, caller, id));
  if (!found) return refuseUnknownCharge(api, id);
  const credits = await listCreditsOfCharge(api.database, caller, found.id);
  return {
    status: 200,
    body: {
      ...listedCharge(api, found),
      paidBy: credits.map(({ source, topUpId, creditedAt, paidMicros }) => ({
        source,
        ...(topUpId !== null && { topUpId: wireId('topUp', topUpId) }),
        creditedAt,
        amount: dollarsOf(paidMicros),
      })),
    },
  };
}

/** A little more than three months. */
const DAYS_MAX = 100;

/** Charges less refunds on each UTC day since `from`, which must be the beginning of a UTC day. */
export async function getUsageByDay(
  api: ScanApi,
  { caller, query }: Request<undefined, UsageByDayQuery>,
): Promise<Reply<UsageByDayReply>> {
  const fromMs = parseTime(query.from);
  refuseInside('day', 'from', fromMs);
  const days = Math.max(Math.ceil((api.clock.nowMs() - fromMs) / DAY_MS), 0);
  if (days > DAYS_MAX) {
    throw invalidField('from', `from must be at most ${DAYS_MAX} days ago.`);
  }
  const found = await listUsageByDay(api.database, caller, { fromMs, days });
  return {
    status: 200,
    body: {
      days: found.map(({ fromMs: dayMs, spentMicros }) => ({
        from: new Date(dayMs).toISOString(),
        spent: dollarsOf(spentMicros),
      })),
    },
  };
}
