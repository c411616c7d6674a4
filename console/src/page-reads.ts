/**
 * What the first pages of both roles read. The router starts these requests together with the page's code, so that
 * neither waits for the other. A browser sends six requests at a time, and the API reads one list of an account's
 * charges at a time: what users look for first comes first.
 */
import { queryOptions, type QueryClient } from '@tanstack/react-query';
import type {
  Balance,
  Budgets,
  Charges,
  Consent,
  Earnings,
  Keys,
  Session,
  Tools,
  TopUps,
  UsageByDay,
} from './answers.ts';
import { read } from './api.ts';
import { daysAgo } from './format.ts';
import { pagedRead } from './paged-read.ts';
import { nowSignedIn } from './session.ts';

/** How many days a chart shows at first, today included. */
export const DAYS = 30;

export const sessionRead = queryOptions({
  queryKey: ['session'],
  queryFn: async () => nowSignedIn(await read<Session>('/v1/session')),
  staleTime: 60_000,
});

export const keysRead = queryOptions({
  queryKey: ['keys', '/v1/keys'],
  queryFn: () => read<Keys>('/v1/keys'),
});

export const balanceRead = queryOptions({
  queryKey: ['balance'],
  queryFn: () => read<Balance>('/v1/balance'),
});

export const usageByDayRead = queryOptions({
  queryKey: ['usage-by-day'],
  queryFn: () => read<UsageByDay>(`/v1/usage/daily?from=${daysAgo(DAYS - 1)}`),
});

export const consentRead = queryOptions({
  queryKey: ['consent'],
  queryFn: () => read<Consent>('/v1/consent'),
});

export const topUpsRead = pagedRead<TopUps>(['top-ups'], '/v1/top-up?limit=20');

/** Whether there is a budget. */
export const anyBudgetRead = queryOptions({
  queryKey: ['budgets', 'any'],
  queryFn: () => read<Budgets>('/v1/budgets?limit=1'),
});

export function readBalancePage(queries: QueryClient): void {
  void queries.prefetchQuery(sessionRead);
  void queries.prefetchQuery(balanceRead);
  void queries.prefetchQuery(usageByDayRead);
  void queries.prefetchQuery(consentRead);
  void queries.prefetchInfiniteQuery(topUpsRead);
  void queries.prefetchQuery(anyBudgetRead);
}

export const earningsRead = queryOptions({
  queryKey: ['earnings'],
  queryFn: () => read<Earnings>('/v1/earnings'),
});

export const recentChargesRead = queryOptions({
  queryKey: ['recent-charges'],
  queryFn: () => read<Charges>('/v1/charges?limit=10'),
});

/** The first word of the keys of all those reads. */
export const EARNINGS_BY_DAY = 'earnings-by-day';

/** The earnings of one tool, or of all. */
export const earningsByDayRead = (days: number, tool?: string) =>
  queryOptions({
    queryKey: [EARNINGS_BY_DAY, days, tool],
    queryFn: () => {
      const asked = {
        interval: 'day',
        from: daysAgo(days - 1),
        ...(tool !== undefined && { tool }),
      };
      return read<Earnings>(`/v1/earnings?${new URLSearchParams(asked)}`);
    },
  });

export const toolsRead = queryOptions({
  queryKey: ['tools', false],
  queryFn: () => read<Tools>('/v1/tools?archived=false&limit=100'),
});

export function readDashboard(queries: QueryClient): void {
  void queries.prefetchQuery(sessionRead);
  void queries.prefetchQuery(earningsRead);
  void queries.prefetchQuery(earningsByDayRead(DAYS));
  void queries.prefetchQuery(recentChargesRead);
  void queries.prefetchQuery(toolsRead);
  void queries.prefetchQuery(keysRead);
}
