/** Receipts, read back: does one hold, and the keys with which its developer verifies offline. */
import { verifyInvocation } from '../../../charging/invocation-receipts.ts';
import { wireId } from '../../../domain/ids.ts';
import { asMicros, dollarsOf } from '../../../domain/money.ts';
import type { ReceiptKeysReply, VerifyBody, VerifyReply } from '../../../schemas/receipts.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';

export async function verifyReceipt(
  api: Api,
  { body }: Request<VerifyBody>,
): Promise<Reply<VerifyReply>> {
  const invoked = verifyInvocation(api.receipts, body.receipt);
  if (invoked) {
    const { receiptKey, invocation } = invoked;
    return { status: 200, body: { valid: true, keyId: String(receiptKey), invocation } };
  }
  const charge = api.receipts.verify(body.receipt);
  return {
    status: 200,
    body: {
      valid: charge !== undefined,
      keyId: charge ? String(charge.receiptKey) : null,
      charge: charge
        ? {
            id: wireId('charge', charge.id),
            consumerId: wireId('consumer', charge.consumerId),
            developerId: wireId('developer', charge.developerId),
            tool: charge.tool,
            amount: dollarsOf(asMicros(charge.amountMicros)),
            createdAt: charge.createdAt,
          }
        : null,
    },
  };
}

/** The developer's own keys, one for each master secret that is known. */
export async function getReceiptKeys(
  api: Api,
  { caller }: Request,
): Promise<Reply<ReceiptKeysReply>> {
  const keys = api.receipts.developerKeys(caller.developerId);
  return { status: 200, body: { keys: keys.map(({ id, key }) => ({ id: String(id), key })) } };
}
