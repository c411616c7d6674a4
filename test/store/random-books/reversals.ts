/** Refunds, disputes and fraud warnings of top-ups, as the processor reports them, in every order. */
import { Type } from 'typebox';
import { asMicros } from '../../../src/domain/money.ts';
import { row, sql } from '../../../src/store/database.ts';
import { failRefund, requestRefund } from '../../../src/store/top-ups/request-refund.ts';
import {
  dismissFraudWarnings,
  getReversalsVersion,
  recordReversals,
  type ReportedReversal,
} from '../../../src/store/top-ups/reversals.ts';
import { dispute, processorId, refund, warning } from '../../support/payer.ts';
import type { Random } from '../../support/random.ts';
import { pickRecent, type Books, type MadeTopUp, type Owner } from './books.ts';

const CENT = 10_000;

const grossRow = row(Type.Object({ gross: Type.Integer() }));

export async function askRefund(books: Books, owner: Owner, random: Random): Promise<void> {
  const topUp = random.pick(owner.topUps);
  const amount = random.chance(0.5) ? undefined : asMicros(random.between(1, 30) * CENT);
  const by = random.chance(0.3)
    ? { idempotencyKey: `refund ${topUp.id} ${random.between(1, 2)}` }
    : undefined;
  const result = await requestRefund(books.database, topUp.id, amount, by);
  const isReplay = result.kind === 'requested' && result.isReplay;
  books.count(`ask for refund ${isReplay ? 'replayed' : result.kind}`);
  if (result.kind !== 'requested' || isReplay) return;
  const { refundId } = result;
  const grossMicros = await books.database.oneFirst(sql.type(grossRow)`
    select coalesce(gross_micros, amount_micros) as gross from farebox.reversals where id = ${refundId}
  `);
  topUp.requested = [...topUp.requested, { refundId, grossMicros }];
}

/** Something happens to a payment at the processor, and its view of it is recorded, unless a later one was. */
export async function report(books: Books, owner: Owner, random: Random): Promise<void> {
  const { database } = books;
  const reversed = owner.topUps.filter(({ reversals }) => reversals.length > 0);
  const isKnown = reversed.length > 0 && random.chance(0.5);
  const topUp = pickRecent(isKnown ? reversed : owner.topUps, random);
  const version = await getReversalsVersion(database, topUp.id);
  const failed = happen(topUp, random);
  for (const refundId of failed) await failRefund(database, topUp.id, refundId, 'no');
  if (failed.length > 0) books.count('report failed refund');
  const isRecorded = await recordReversals(database, topUp.id, version, topUp.reversals);
  books.count(`report ${isRecorded ? 'recorded' : 'late'}`);
  if (!isRecorded) return;
  for (const { kind, status } of topUp.reversals) books.count(`report ${kind} ${status}`);
}

/** Returns the ids of refunds that the processor refused. */
function happen(topUp: MadeTopUp, random: Random): readonly string[] {
  const gross = asMicros(
    random.chance(0.5) ? topUp.grossMicros : random.between(1, topUp.grossMicros / CENT) * CENT,
  );
  const isOpen = topUp.reversals.some(
    ({ kind, status }) => kind === 'dispute' && status === 'open',
  );
  const what = random.weighted({ dispute: 2, warning: 2, refund: 1, change: 5 });
  if (what === 'dispute' && !isOpen) add(topUp, dispute(processorId('dp'), gross));
  else if (what === 'warning') add(topUp, warning(processorId('issfr'), gross));
  else if (what === 'refund' && gross <= leftOf(topUp))
    add(topUp, refund(processorId('re'), gross));
  else {
    topUp.reversals = topUp.reversals.map((each) =>
      random.chance(0.3) ? each : changed(each, random),
    );
    return answerRequests(topUp, random);
  }
  return [];
}

function add(topUp: MadeTopUp, reversal: ReportedReversal): void {
  topUp.reversals = [...topUp.reversals, reversal];
}

/** What no refund has taken, in micros with tax. */
function leftOf({ grossMicros, requested, reversals }: MadeTopUp): number {
  const made = reversals.filter(({ kind, status }) => kind === 'refund' && status === 'made');
  return [...requested, ...made].reduce((left, taken) => left - taken.grossMicros, grossMicros);
}

function changed(reversal: ReportedReversal, random: Random): ReportedReversal {
  switch (reversal.kind) {
    case 'dispute':
      return { ...reversal, status: random.pick(['open', 'won', 'lost', 'lost']) };
    case 'warning':
      return { ...reversal, status: random.pick(['open', 'won']) };
    case 'refund':
      return { ...reversal, status: 'failed' };
  }
}

function answerRequests(topUp: MadeTopUp, random: Random): readonly string[] {
  const answered = topUp.requested.filter(() => random.chance(0.5));
  topUp.requested = topUp.requested.filter((request) => !answered.includes(request));
  const refused: string[] = [];
  for (const { refundId, grossMicros } of answered) {
    if (random.chance(0.3) || grossMicros > leftOf(topUp)) refused.push(refundId);
    else add(topUp, refund(processorId('re'), grossMicros, 'made', refundId));
  }
  return refused;
}

export async function dismiss(books: Books, owner: Owner, random: Random): Promise<void> {
  // Most have no warning.
  for (const { id } of owner.topUps.filter(() => random.chance(0.3))) {
    const dismissed = await dismissFraudWarnings(books.database, id);
    books.count(`dismiss warnings ${dismissed ? 'done' : 'none'}`);
  }
}
