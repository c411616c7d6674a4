/**
 * The threshold of `balance.low`. With the secret key or in the console, as webhook endpoints: tool
 * servers have consumer keys.
 */
import { dollarsOf } from '../../../domain/money.ts';
import type { LowBalanceBody, LowBalanceReply } from '../../../schemas/balance.ts';
import type { Connection } from '../../../store/database.ts';
import { findLowBalance, setLowBalance } from '../../../store/balance/thresholds.ts';
import { amountOf, CHARGEABLE } from '../../amounts.ts';
import type { Reply, Request } from '../../endpoint.ts';
import type { Api } from '../../services.ts';

export async function getLowBalance(
  { database }: { readonly database: Connection },
  { caller }: Pick<Request, 'caller'>,
): Promise<Reply<LowBalanceReply>> {
  const below = await findLowBalance(database, caller);
  return { status: 200, body: { threshold: below === null ? null : dollarsOf(below) } };
}

/** If the reply cannot be read, nothing has changed. */
export async function patchLowBalance(
  api: Api,
  { caller, body: { threshold } }: Request<LowBalanceBody>,
): Promise<Reply<LowBalanceReply>> {
  const below = threshold === null ? null : amountOf('threshold', threshold, CHARGEABLE);
  return api.database.transaction(async (database) => {
    await setLowBalance(database, caller, below);
    return getLowBalance({ database }, { caller });
  });
}
