/** Lists as files: the rows and the filters of their JSON, whole instead of by pages. */
import { uuidTimeMs, wireId } from '../domain/ids.ts';
import {
  listConsumerCharges,
  listDeveloperCharges,
  type StoredCharge,
} from '../store/charge-lists.ts';
import type { Api } from './api.ts';
import { pagesOf, type Cell, type Export } from './csv.ts';
import type { Request } from './endpoint.ts';
import { chargeFilterOf, developerChargeFilterOf } from './query.ts';

export function exportCharges(api: Api, { caller, query }: Request<undefined>): Export {
  const filter = developerChargeFilterOf(query);
  return {
    name: 'charges',
    header: ['id', 'createdAt', 'tool', 'amount', 'consumerId', 'metadata'],
    pages: pagesOf(
      (page) => listDeveloperCharges(api.database, caller, filter, page),
      (charge) => [
        ...cellsOf(charge),
        wireId('consumer', charge.consumerId),
        charge.metadata === null ? '' : JSON.stringify(charge.metadata),
      ],
    ),
  };
}

export function exportUsage(api: Api, { caller, query }: Request<undefined>): Export {
  const filter = chargeFilterOf(query);
  return {
    name: 'usage',
    header: ['id', 'createdAt', 'tool', 'amount', 'developerId'],
    pages: pagesOf(
      (page) => listConsumerCharges(api.database, caller, filter, page),
      (charge) => [...cellsOf(charge), wireId('developer', charge.developerId)],
    ),
  };
}

function cellsOf({ id, tool, amountMicros }: StoredCharge): Cell[] {
  return [wireId('charge', id), new Date(uuidTimeMs(id)).toISOString(), tool, BigInt(amountMicros)];
}
