/**
 * What the consumer keys of the account may be charged. Only its owner changes it: a tool server has such a
 * key too.
 */
import { dollarsOf } from '../../../domain/money.ts';
import type { AccountKeysBody, AccountKeysReply } from '../../../schemas/keys.ts';
import {
  changeAccountKeys,
  readAccountKeys,
  type AccountKeys,
} from '../../../store/accounts/account-keys.ts';
import { credentialOf } from '../../authenticate.ts';
import { amountOf } from '../../amounts.ts';
import type { Reply, Request } from '../../endpoint.ts';
import type { Api } from '../../services.ts';
import { LIMIT } from '../budgets/budgets.ts';

export async function getAccountKeys(
  api: Api,
  { caller }: Request,
): Promise<Reply<AccountKeysReply>> {
  return shown(await readAccountKeys(api.database, caller));
}

export async function patchAccountKeys(
  api: Api,
  { caller, body }: Request<AccountKeysBody>,
): Promise<Reply<AccountKeysReply>> {
  const { charge, developerDayLimit: limit } = body;
  const changes = {
    ...(charge !== undefined && { charge }),
    ...(limit !== undefined && {
      developerDayMicros: limit === null ? null : amountOf('developerDayLimit', limit, LIMIT),
    }),
  };
  return shown(await changeAccountKeys(api.database, caller, changes, credentialOf(caller)));
}

function shown({ charge, developerDayMicros: micros }: AccountKeys): Reply<AccountKeysReply> {
  const developerDayLimit = micros === null ? null : dollarsOf(micros);
  return { status: 200, body: { charge, developerDayLimit } };
}
