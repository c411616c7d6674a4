/** Receipts, read back: does one hold, is it recorded, and the keys to verify with. */
import type { Middleware } from 'koa';
import { ApiError } from '../../../domain/errors.ts';
import type {
  PublicReceiptBody,
  PublicReceiptReply,
  ReceiptKeysReply,
  VerifyBody,
  VerifyReply,
} from '../../../schemas/receipts.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { respondJson } from '../../respond.ts';
import type { Api } from '../../services.ts';
import { checkReceipt } from './recorded-receipts.ts';

/** `valid` only for what the ledger has: the signature may be the developer's own. */
export async function verifyReceipt(
  api: Api,
  { body }: Request<VerifyBody>,
): Promise<Reply<VerifyReply>> {
  const checked = await checkReceipt(api, body.receipt);
  const { charge = null, invocation } = checked?.recorded ?? {};
  const isRecorded = checked?.recorded !== undefined;
  return {
    status: 200,
    body: {
      valid: isRecorded,
      recorded: isRecorded,
      keyId: checked?.keyId ?? null,
      ...(invocation ? { invocation } : { charge }),
    },
  };
}

/** The receipt again, signed so that its payer can check it alone; 404 for one that is not recorded. */
export async function postPublicReceipt(
  api: Api,
  { body }: Request<PublicReceiptBody>,
): Promise<Reply<PublicReceiptReply>> {
  const recorded = (await checkReceipt(api, body.receipt))?.recorded;
  if (!recorded) {
    throw new ApiError('not_found', 'The receipt is not of a recorded charge or invocation.', {
      param: 'receipt',
    });
  }
  return { status: 200, body: { receipt: api.publicReceipts.sign(recorded.receipt) } };
}

/** The developer's own keys, one for each master secret that is known. */
export async function getReceiptKeys(
  api: Api,
  { caller }: Request,
): Promise<Reply<ReceiptKeysReply>> {
  const keys = api.receipts.developerKeys(caller.developerId);
  return { status: 200, body: { keys: keys.map(({ id, key }) => ({ id: String(id), key })) } };
}

/** An hour, in which a new key's receipts may be met: verifiers ask again for a key id that they do not know. */
const CACHED = { 'Cache-Control': 'public, max-age=3600', 'Access-Control-Allow-Origin': '*' };

/** For anybody, as a JSON Web Key Set (RFC 7517). */
export function getPublicKeys(api: Api): Middleware {
  const { keys } = api.publicReceipts;
  return async (ctx) => respondJson(ctx, { status: 200, body: { keys }, headers: CACHED });
}
