/**
 * Finds the charge or invocation in the ledger that gives exactly a receipt. A signature alone proves less,
 * because a developer has the key that signs its receipts.
 */
import type { Static } from 'typebox';
import { verifyInvocation } from '../../../charging/invocation-receipts.ts';
import { receiptPayload } from '../../../charging/receipts.ts';
import { isSameText } from '../../../signing/hmac.ts';
import { uuidOf } from '../../../domain/ids.ts';
import { dollarsOf } from '../../../domain/money.ts';
import type { SignedInvocation } from '../../../schemas/invocations.ts';
import type { VerifyReply } from '../../../schemas/receipts.ts';
import { findChargeOf } from '../../../store/charges/list-charges.ts';
import { findInvocation } from '../../../store/agents/invocations.ts';
import type { Api } from '../../services.ts';
import { refuseArchivedCharge } from '../../refuse-archived.ts';
import { signedInvocationOf } from '../agents/invocation-receipts.ts';

/** A receipt with a valid signature. */
export interface CheckedReceipt {
  readonly keyId: string;
  /** The record in the ledger with the same payload, to the byte; undefined if there is none. */
  readonly recorded: Recorded | undefined;
}

export interface Recorded {
  /** Signed by HMAC, as in lists. */
  readonly receipt: string;
  readonly charge?: NonNullable<VerifyReply['charge']>;
  readonly invocation?: Static<typeof SignedInvocation>;
}

/** Undefined when the signature, of either kind, is invalid. */
export async function checkReceipt(api: Api, receipt: string): Promise<CheckedReceipt | undefined> {
  const publicClaim = api.publicReceipts.read(receipt);
  const claim = publicClaim ?? hmacClaimOf(api, receipt);
  if (!claim) return undefined;
  const found = await find(api, claim.payload);
  // A public receipt has a later key id than the charge if the secret of the charge is retired.
  const compared = publicClaim ? payloadIn : (text: string) => text;
  const isSame = found && isSameText(compared(found.receipt), compared(receipt));
  return { keyId: String(claim.receiptKey), recorded: isSame ? found : undefined };
}

function hmacClaimOf({ receipts }: Api, receipt: string) {
  const holds = receipts.verify(receipt) ?? verifyInvocation(receipts, receipt);
  return holds && receipts.readClaim(receipt);
}

/** Encoded, as all receipts of a charge share it, regardless of key and signature. */
function payloadIn(receipt: string): string {
  return receipt.split('.')[2] ?? '';
}

async function find(
  api: Api,
  { id, developerId }: Readonly<Record<string, unknown>>,
): Promise<Recorded | undefined> {
  const developer = uuidOf('developer', developerId);
  const chargeId = uuidOf('charge', id);
  if (developer && chargeId) return findCharge(api, developer, chargeId);
  const invocationId = uuidOf('invocation', id);
  const invocation = invocationId && (await findInvocation(api.database, invocationId));
  if (!invocation || invocation.endedAt === null) return undefined;
  const { receipt, said } = await signedInvocationOf(api, invocation);
  return { receipt, invocation: said };
}

async function findCharge(
  api: Api,
  developerId: string,
  id: string,
): Promise<Recorded | undefined> {
  const charge = await findChargeOf(api.database, developerId, id);
  if (!charge) {
    await refuseArchivedCharge(api, id);
    return undefined;
  }
  const { micros: _, ...said } = receiptPayload(charge);
  const livemode = !charge.isTest;
  const amount = dollarsOf(charge.amountMicros);
  return { receipt: api.receipts.sign(charge), charge: { ...said, amount, livemode } };
}
