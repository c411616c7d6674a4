/** The developer's view of top-ups: those that paid for charges to its tools (specification section 4.2). */
import { wireId } from '../../../domain/ids.ts';
import { asMicros, dollarsOf } from '../../../domain/money.ts';
import { listAttributedTopUps } from '../../../store/earnings/top-up-attribution.ts';
import type { Api } from '../../services.ts';
import type { Answer, Request } from '../../endpoint.ts';
import { paged, pageOf } from '../../query.ts';

export async function getDeveloperTopUps(
  api: Api,
  { caller, query }: Request<undefined>,
): Promise<Answer> {
  const page = pageOf(query, 'topUp');
  const found = await listAttributedTopUps(api.database, caller, {
    ...page,
    limit: page.limit + 1,
  });
  const { rows, ...marks } = paged(found, page.limit, 'topUp');
  return {
    status: 200,
    body: {
      topUps: rows.map((topUp) => ({
        id: wireId('topUp', topUp.id),
        consumerId: wireId('consumer', topUp.consumerId),
        amount: dollarsOf(asMicros(topUp.amountMicros)),
        status: topUp.status,
        createdAt: topUp.createdAt,
        charged: dollarsOf(asMicros(topUp.chargedMicros)),
        charges: topUp.charges,
      })),
      ...marks,
    },
  };
}
