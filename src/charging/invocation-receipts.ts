/**
 * Receipts of invocations: the same signature as a charge's (receipts.ts), by the key of the developer whose
 * account invoked. What was asked for and what was answered are in it as hashes.
 */
import type { Static } from 'typebox';
import { uuidOf } from '../domain/ids.ts';
import type { SignedInvocation } from '../schemas/invocations.ts';
import { isSameReceipt, type ReceiptSigner } from './receipts.ts';

/** Ids as on the wire. */
export type InvocationSubject = Static<typeof SignedInvocation>;

/** The same invocation gives the same receipt, to the byte, for as long as its secret is kept. */
export function signInvocation(
  signer: ReceiptSigner,
  receiptKey: number,
  said: InvocationSubject,
): string {
  return signer.signPayload(receiptKey, inOrder(said));
}

/** What a receipt says, when it is one of an invocation, ours, and unchanged to the byte. */
export function verifyInvocation(
  signer: ReceiptSigner,
  receipt: string,
): { readonly receiptKey: number; readonly invocation: InvocationSubject } | undefined {
  const claim = signer.readClaim(receipt);
  if (!claim || !uuidOf('invocation', String(claim.payload['id']))) return undefined;
  if (!uuidOf('developer', String(claim.payload['developerId']))) return undefined;
  // Whatever else it claims: only what we have signed comes out the same when it is signed again.
  const invocation = inOrder(claim.payload as InvocationSubject);
  if (!Object.values(invocation).every((value) => typeof value === 'string' || value === null)) {
    return undefined;
  }
  const again = signInvocation(signer, claim.receiptKey, invocation);
  return isSameReceipt(again, receipt) ? { receiptKey: claim.receiptKey, invocation } : undefined;
}

/** A receipt is compared by its bytes, so its members have one order. */
function inOrder(said: InvocationSubject): InvocationSubject {
  return {
    id: said.id,
    developerId: said.developerId,
    callerId: said.callerId,
    targetAgentId: said.targetAgentId,
    grantId: said.grantId,
    capability: said.capability,
    status: said.status,
    requestSha256: said.requestSha256,
    resultSha256: said.resultSha256,
    createdAt: said.createdAt,
    completedAt: said.completedAt,
  };
}
