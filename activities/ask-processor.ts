/**
 * Reads the state of a top-up at the payment processor, and records a final state in its row as evidence. The steps that
 * credit, fail or expire a top-up trust that evidence, and never their caller.
 */
import type { Stripe } from 'stripe';
import { readIntent, readSession } from '../src/stripe/calls.ts';
import type { Verdict } from '../src/domain/verdict.ts';
import { PaymentMismatchError, verdictOfIntent, verdictOfSession } from '../src/stripe/verdict.ts';
import type { Database } from '../src/store/database.ts';
import { recordSeen } from '../src/store/top-ups/payment-evidence.ts';
import type { TopUp } from '../src/store/top-ups/top-ups.ts';

export interface AskDeps {
  readonly database: Database;
  readonly stripe: Stripe;
}

export async function ask(deps: AskDeps, topUp: TopUp): Promise<Verdict> {
  const verdict = await seen(deps, topUp, await read(deps, topUp));
  if (verdict.kind !== 'paid' || topUp.paymentIntentId !== null) return verdict;
  // Reports of refunds and disputes name only the payment intent, which our row did not have until now. Reading again
  // finds those that were reported before.
  return read(deps, topUp);
}

async function read({ stripe }: AskDeps, topUp: TopUp): Promise<Verdict> {
  if (topUp.sessionId !== null) {
    return verdictOfSession(await readSession(stripe, topUp.sessionId), topUp);
  }
  if (topUp.paymentIntentId !== null) {
    return verdictOfIntent(await readIntent(stripe, topUp.paymentIntentId), topUp);
  }
  return { kind: 'open' };
}

/** Records a final verdict in the row, then returns it. */
export async function seen(
  { database }: AskDeps,
  { id }: Pick<TopUp, 'id'>,
  verdict: Verdict,
): Promise<Verdict> {
  switch (verdict.kind) {
    case 'open':
      return verdict;
    case 'paid':
    case 'expired':
      if (await recordSeen(database, id, verdict)) return verdict;
      throw new PaymentMismatchError('the payment is not the one recorded for the top-up');
    case 'failed':
      await recordSeen(database, id, { kind: 'failed', code: verdict.failure.code });
      return verdict;
  }
}
