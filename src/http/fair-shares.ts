/** What one account may take of an API process, so that it slows down itself and nobody else. */
import { AccountGate } from './account-gate.ts';

/** Of the 8 connections for reads: two accounts that flood leave some for the others. */
const READS = { weightMax: 3, waitMsMax: 2_000, waitingMax: 100 };

/** An export lasts as long as its reader takes; each page is a statement of a few milliseconds. */
const EXPORTS = { weightMax: 3, waitMsMax: 2_000, waitingMax: 20 };

/** Each locks a consumer, whose charges wait meanwhile with everything else in their flush. */
const REFUNDS = { weightMax: 2, waitMsMax: 5_000, waitingMax: 100 };

/**
 * Bytes of batches: some 2,000 charges, ten flushes, which keep the database busy. More would only keep
 * others waiting for the event loop while thousands of members are read and answered.
 */
const BATCHES = { weightMax: 256 * 1024, waitMsMax: 5_000, waitingMax: 256 };

export type Share = 'reads' | 'exports' | 'refunds' | 'batches';

export function createFairShares(): Readonly<Record<Share, AccountGate>> {
  return {
    reads: new AccountGate(READS),
    exports: new AccountGate(EXPORTS),
    refunds: new AccountGate(REFUNDS),
    batches: new AccountGate(BATCHES),
  };
}
