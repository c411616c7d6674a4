/** What a consumer reads about itself (specification section 4.1). */
import { wireId } from '../../../domain/ids.ts';
import { dollarsOf } from '../../../domain/money.ts';
import type { BalanceReply, UsageReply } from '../../../schemas/balance.ts';
import type { UsageQuery } from '../../../schemas/charges.ts';
import { findAutoTopUp } from '../../../store/top-ups/auto-top-ups.ts';
import { listConsumerCharges, sumConsumerUsage } from '../../../store/charges/list-charges.ts';
import { getCounters } from '../../../store/balance/consumers.ts';
import type { Api } from '../../services.ts';
import { listedCharge } from '../charges/charges.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { chargeFilterOf } from '../../filters.ts';
import { listPage } from '../../pagination.ts';

export async function getBalance(api: Api, { caller }: Request): Promise<Reply<BalanceReply>> {
  const [{ balance, debt }, autoTopUp] = await Promise.all([
    getCounters(api.database, caller),
    findAutoTopUp(api.database, caller),
  ]);
  return {
    status: 200,
    body: {
      balance: dollarsOf(balance),
      debt: dollarsOf(debt),
      consumerId: wireId('consumer', caller.consumerId),
      autoTopUp: { status: autoTopUp?.status ?? 'off', reason: autoTopUp?.reason ?? null },
    },
  };
}

/**
 * Newest first. `total` is of all that matches, so it does not change from page to page: what was charged,
 * less what was refunded, each by its own time. So the totals of two months add up to that of both.
 */
export async function getUsage(
  api: Api,
  { caller, query }: Request<undefined, UsageQuery>,
): Promise<Reply<UsageReply>> {
  const filter = chargeFilterOf(query);
  const [{ rows, hasMore, nextCursor }, total] = await Promise.all([
    listPage(query, 'charge', (page) => listConsumerCharges(api.database, caller, filter, page)),
    sumConsumerUsage(api.database, caller, filter),
  ]);
  const charges = rows.map((charge) => listedCharge(api, charge));
  return { status: 200, body: { charges, total: dollarsOf(total), hasMore, nextCursor } };
}
