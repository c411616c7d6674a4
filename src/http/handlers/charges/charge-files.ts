/** Lists as CSV files: the same rows and filters as in JSON, complete instead of page by page. */
import { wireId, uuidTime } from '../../../domain/ids.ts';
import type { ChargesFileQuery, UsageFileQuery } from '../../../schemas/charges.ts';
import type { EarningsFileQuery } from '../../../schemas/earnings.ts';
import {
  listConsumerCharges,
  listDeveloperCharges,
  type StoredCharge,
} from '../../../store/charges/list-charges.ts';
import {
  listToolEarnings,
  type ToolIntervalEarnings,
} from '../../../store/earnings/earnings-by-tool.ts';
import type { Page } from '../../../store/page.ts';
import type { Api } from '../../services.ts';
import { pagesOf, type Cell, type Export } from '../../csv.ts';
import type { Request } from '../../endpoint.ts';
import { rangeOf } from '../earnings/earnings.ts';
import { chargeFilterOf, developerChargeFilterOf, timeRangeOf } from '../../filters.ts';
import { archiveGuard } from '../../refuse-archived.ts';

export function exportCharges(
  api: Api,
  { caller, query }: Request<undefined, ChargesFileQuery>,
): Export {
  const filter = developerChargeFilterOf(query);
  return {
    name: 'charges',
    header: ['id', 'createdAt', 'tool', 'amount', 'refunded', 'consumerId', 'metadata'],
    pages: chargePages(
      archiveGuard(api, timeRangeOf(query)),
      (page) => listDeveloperCharges(api.database, caller, filter, page),
      (charge) => [
        ...cellsOf(charge),
        wireId('consumer', charge.consumerId),
        charge.metadata === null ? '' : JSON.stringify(charge.metadata),
      ],
    ),
  };
}

export function exportUsage(
  api: Api,
  { caller, query }: Request<undefined, UsageFileQuery>,
): Export {
  const filter = chargeFilterOf(query);
  return {
    name: 'usage',
    header: ['id', 'createdAt', 'tool', 'amount', 'refunded', 'developerId'],
    pages: chargePages(
      archiveGuard(api, timeRangeOf(query)),
      (page) => listConsumerCharges(api.database, caller, filter, page),
      (charge) => [...cellsOf(charge), wireId('developer', charge.developerId)],
    ),
  };
}

/** By tool, then by time. Charges made during the export may be missing, but none is counted twice. */
export function exportEarnings(
  api: Api,
  { caller, query }: Request<undefined, EarningsFileQuery>,
): Export {
  const { interval = 'day' } = query;
  const range = rangeOf(query, interval);
  return {
    name: 'earnings',
    header: ['tool', 'from', 'charges', 'amount'],
    pages: pagesOf(
      (limit, after?: ToolIntervalEarnings) =>
        listToolEarnings(api.database, caller, range, interval, { limit, after }),
      ({ tool, beginsMs, charges, earningsMicros }) => [
        tool,
        new Date(beginsMs).toISOString(),
        charges,
        BigInt(earningsMicros),
      ],
    ),
  };
}

function chargePages(
  guard: () => Promise<void>,
  list: (page: Page) => Promise<readonly StoredCharge[]>,
  cellsOfOne: (charge: StoredCharge) => readonly Cell[],
): Export['pages'] {
  return pagesOf(async (limit, last?: StoredCharge) => {
    if (!last) await guard();
    const rows = await list({ limit, beforeId: last?.id });
    if (rows.length < limit) await guard();
    return rows;
  }, cellsOfOne);
}

function cellsOf({ id, tool, amountMicros, refundedMicros }: StoredCharge): Cell[] {
  const createdAt = uuidTime(id);
  return [wireId('charge', id), createdAt, tool, BigInt(amountMicros), BigInt(refundedMicros)];
}
