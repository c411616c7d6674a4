/**
 * What stands behind a receipt: the charge or invocation in the ledger that gives these very words. A signature alone
 * proves less, since a developer has the key that signs its receipts.
 */
import type { Static } from 'typebox';
import { verifyInvocation } from '../../../charging/invocation-receipts.ts';
import { isSameReceipt, receiptPayload } from '../../../charging/receipts.ts';
import { uuidOf } from '../../../domain/ids.ts';
import { dollarsOf } from '../../../domain/money.ts';
import type { SignedInvocation } from '../../../schemas/invocations.ts';
import type { VerifyReply } from '../../../schemas/receipts.ts';
import { findChargeOf } from '../../../store/charges/list-charges.ts';
import { findInvocation } from '../../../store/agents/invocations.ts';
import type { Api } from '../../services.ts';
import { signedInvocationOf } from '../agents/invocation-receipts.ts';

/** A receipt whose signature is right. */
export interface CheckedReceipt {
  readonly keyId: string;
  /** What is in the ledger and says the same, to the byte; undefined: nothing. */
  readonly recorded: Recorded | undefined;
}

export interface Recorded {
  /** By HMAC, as lists show it. */
  readonly receipt: string;
  readonly charge?: NonNullable<VerifyReply['charge']>;
  readonly invocation?: Static<typeof SignedInvocation>;
}

/** Undefined when the signature, of whichever kind, is not right. */
export async function checkReceipt(api: Api, receipt: string): Promise<CheckedReceipt | undefined> {
  const claim = api.publicReceipts.read(receipt) ?? hmacClaimOf(api, receipt);
  if (!claim) return undefined;
  const found = await find(api, claim.payload);
  const isSame = found && isSameReceipt(wordsOf(found.receipt), wordsOf(receipt));
  return { keyId: String(claim.receiptKey), recorded: isSame ? found : undefined };
}

function hmacClaimOf({ receipts }: Api, receipt: string) {
  const holds = receipts.verify(receipt) ?? verifyInvocation(receipts, receipt);
  return holds && receipts.readClaim(receipt);
}

/** Key id and payload: what two receipts of the same charge have in common, however they are signed. */
function wordsOf(receipt: string): string {
  return receipt.split('.').slice(1, 3).join('.');
}

async function find(
  api: Api,
  { id, developerId }: Readonly<Record<string, unknown>>,
): Promise<Recorded | undefined> {
  const developer = uuidOf('developer', String(developerId));
  const chargeId = uuidOf('charge', String(id));
  if (developer && chargeId) return findCharge(api, developer, chargeId);
  const invocationId = uuidOf('invocation', String(id));
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
  if (!charge) return undefined;
  const { micros: _, ...said } = receiptPayload(charge);
  const amount = dollarsOf(charge.amountMicros);
  return { receipt: api.receipts.sign(charge), charge: { ...said, amount } };
}
