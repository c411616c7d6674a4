/** Verifies receipts, signs public ones, and serves the keys to verify them with. */
import { ApiError } from '../../../domain/errors.ts';
import type {
  PublicKeysReply,
  PublicReceiptBody,
  PublicReceiptReply,
  ReceiptKeysReply,
  VerifyBody,
  VerifyReply,
} from '../../../schemas/receipts.ts';
import type { Reply, Request } from '../../endpoint.ts';
import type { Api } from '../../services.ts';
import { checkReceipt } from './recorded-receipts.ts';

/** `valid` only for a charge or invocation in the ledger: the developer could have made the signature. */
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

/** The same receipt, signed so that its payer can verify it offline; 404 if nothing is recorded for it. */
export async function postPublicReceipt(
  api: Api,
  { body }: Request<PublicReceiptBody>,
): Promise<Reply<PublicReceiptReply>> {
  const recorded = (await checkReceipt(api, body.receipt))?.recorded;
  if (!recorded) {
    throw new ApiError('not_found', 'No charge or invocation is recorded for this receipt.', {
      param: 'receipt',
    });
  }
  return { status: 200, body: { receipt: api.publicReceipts.sign(recorded.receipt) } };
}

/** The developer's own keys, one for each master secret that is not retired. */
export async function getReceiptKeys(
  api: Api,
  { caller }: Request,
): Promise<Reply<ReceiptKeysReply>> {
  const keys = api.receipts.developerKeys(caller.developerId);
  return { status: 200, body: { keys: keys.map(({ id, key }) => ({ id: String(id), key })) } };
}

/** An hour, although receipts of a new key may appear earlier: verifiers fetch the keys again for an unknown key id. */
const CACHED = { 'Cache-Control': 'public, max-age=3600', 'Access-Control-Allow-Origin': '*' };

/** Public, as a JSON Web Key Set (RFC 7517). */
export function getPublicKeys(api: Api): Reply<PublicKeysReply> {
  return { status: 200, body: { keys: [...api.publicReceipts.keys] }, headers: CACHED };
}
