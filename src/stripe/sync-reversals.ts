/**
 * Records the refunds and disputes of a credited top-up as Stripe has them now, makes the requested refunds,
 * and then the documents: the invoice of a taxed payment by the saved card, and the credit notes of refunds.
 */
import type { Stripe } from 'stripe';
import { wireId } from '../domain/ids.ts';
import type { Database } from '../store/database.ts';
import {
  findSessionWithoutInvoice,
  findWithoutInvoice,
  listWithoutCreditNote,
  recordCreditNote,
  recordInvoice,
} from '../store/top-ups/invoices.ts';
import { failRefund, listRequestedRefunds } from '../store/top-ups/request-refund.ts';
import {
  getReversalsVersion,
  recordReversals,
  type ReportedReversal,
} from '../store/top-ups/reversals.ts';
import { readSession } from './calls.ts';
import { isRefusal } from './errors.ts';
import { addCreditNote, ChangedInvoiceError, makeInvoice } from './invoices.ts';
import { makeRefund, readReversals } from './reversals.ts';
import { idOf } from './verdict.ts';

interface Deps {
  readonly database: Database;
  readonly stripe: Stripe;
  /** Says what Stripe refused: the workflow ends as if nothing had happened. */
  readonly warn: (message: string) => void;
}

/**
 * Reads first, to learn what an earlier attempt did, and so that a refund that cannot be made now does not
 * keep the rest from being recorded. Returns why the invoice could not be made, or null.
 */
export async function syncReversals(
  deps: Deps,
  topUpId: string,
  paymentIntentId: string,
): Promise<string | null> {
  const { database, stripe, warn } = deps;
  await record(database, topUpId, () => readReversals(stripe, paymentIntentId));
  for (const refund of await listRequestedRefunds(database, topUpId)) {
    await record(database, topUpId, async () => {
      const made = await makeRefund(stripe, paymentIntentId, refund);
      if (made.kind === 'made') return [made.reported];
      const [topUp, id] = [wireId('topUp', topUpId), wireId('topUpRefund', refund.id)];
      warn(`Stripe refused the refund ${id} of ${topUp}: ${made.message}`);
      await failRefund(database, topUpId, refund.id, made.message);
      // A fraud warning that the request dismissed is open again, and may be over by now.
      return readReversals(stripe, paymentIntentId);
    });
  }
  const invoiceRefusal = await addInvoice(deps, topUpId);
  await recordInvoiceOfSession(database, stripe, topUpId);
  for (const { id, invoiceId, ...refund } of await listWithoutCreditNote(database, topUpId)) {
    try {
      await recordCreditNote(database, id, await addCreditNote(stripe, invoiceId, refund));
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // Notes of refunds that failed stay, and together they may not exceed the invoice. The next run tries again.
      const about = `${refund.processorId} on ${invoiceId} of ${wireId('topUp', topUpId)}`;
      warn(`Stripe refused a credit note for ${about}: ${error.message}`);
    }
  }
  return invoiceRefusal;
}

/** Makes the missing invoice of a taxed payment by the saved card. Returns why it could not be made, or null. */
async function addInvoice(
  { database, stripe, warn }: Deps,
  topUpId: string,
): Promise<string | null> {
  const uninvoiced = await findWithoutInvoice(database, topUpId);
  if (uninvoiced === null) return null;
  try {
    const invoice = await makeInvoice(stripe, uninvoiced);
    if (invoice !== undefined) await recordInvoice(database, topUpId, invoice);
    return null;
  } catch (error) {
    if (!isRefusal(error) && !(error instanceof ChangedInvoiceError)) throw error;
    // Repeating it at once would change nothing. noteMissingInvoices has it tried later.
    warn(`the invoice of ${wireId('topUp', topUpId)} could not be made: ${error.message}`);
    return error.message;
  }
}

async function recordInvoiceOfSession(
  database: Database,
  stripe: Stripe,
  topUpId: string,
): Promise<void> {
  const sessionId = await findSessionWithoutInvoice(database, topUpId);
  if (sessionId === null) return;
  const invoiceId = idOf((await readSession(stripe, sessionId)).invoice);
  if (invoiceId !== undefined) await recordInvoice(database, topUpId, invoiceId);
}

async function record(
  database: Database,
  topUpId: string,
  read: () => Promise<readonly ReportedReversal[]>,
): Promise<void> {
  const version = await getReversalsVersion(database, topUpId);
  if (await recordReversals(database, topUpId, version, await read())) return;
  throw new Error(
    'The top-up changed while its reversals were read; the next attempt reads them again',
  );
}
