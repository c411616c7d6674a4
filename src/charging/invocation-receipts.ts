/**
 * Receipts for invocations, signed like those of charges (receipts.ts) with the key of the developer whose account
 * invoked. They contain hashes of the request and the result.
 */
import type { Static } from 'typebox';
import { isSameText } from '../signing/hmac.ts';
import { uuidOf } from '../domain/ids.ts';
import type { SignedInvocation } from '../schemas/invocations.ts';
import type { ReceiptSigner } from './receipts.ts';

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

/** The payload of a receipt, when it is an invocation receipt of ours and unchanged to the byte. */
export function verifyInvocation(
  signer: ReceiptSigner,
  receipt: string,
): { readonly receiptKey: number; readonly invocation: InvocationSubject } | undefined {
  const claim = signer.readClaim(receipt);
  if (!claim || !uuidOf('invocation', claim.payload['id'])) return undefined;
  if (!uuidOf('developer', claim.payload['developerId'])) return undefined;
  // Only a payload that we signed gives the same receipt when it is signed again.
  const invocation = inOrder(claim.payload as InvocationSubject);
  if (!Object.values(invocation).every((value) => typeof value === 'string' || value === null)) {
    return undefined;
  }
  const again = signInvocation(signer, claim.receiptKey, invocation);
  return isSameText(again, receipt) ? { receiptKey: claim.receiptKey, invocation } : undefined;
}

/** Receipts are compared byte by byte, so their members have a fixed order. */
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
