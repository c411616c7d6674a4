/** The developer's view of top-ups: those that paid for charges to its tools (specification section 4.2). */
import { wireId } from '../../../domain/ids.ts';
import { dollarsOf } from '../../../domain/money.ts';
import type { PageQuery } from '../../../schemas/shapes.ts';
import type { DeveloperTopUpsReply } from '../../../schemas/top-ups.ts';
import { listAttributedTopUps } from '../../../store/earnings/top-up-attribution.ts';
import type { Reply, Request, ScanApi } from '../../endpoint.ts';
import { listPage } from '../../pagination.ts';

export async function getDeveloperTopUps(
  api: ScanApi,
  { caller, query }: Request<undefined, PageQuery>,
): Promise<Reply<DeveloperTopUpsReply>> {
  const { rows, hasMore, nextCursor } = await listPage(query, 'topUp', (page) =>
    listAttributedTopUps(api.database, caller, page),
  );
  return {
    status: 200,
    body: {
      topUps: rows.map((topUp) => ({
        id: wireId('topUp', topUp.id),
        consumerId: wireId('consumer', topUp.consumerId),
        amount: dollarsOf(topUp.amountMicros),
        status: topUp.status,
        createdAt: topUp.createdAt,
        charged: dollarsOf(topUp.chargedMicros),
        charges: topUp.charges,
      })),
      hasMore,
      nextCursor,
    },
  };
}
