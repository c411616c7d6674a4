/** Holds in the form of their statement, without accounts and keys. */
import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import { HOLD_SECONDS_DEFAULT } from '../../src/domain/hold.ts';
import { asMicros } from '../../src/domain/money.ts';
import { examineLedger } from '../../src/store/doctor/ledger-checks.ts';
import type { Database } from '../../src/store/database.ts';
import * as store from '../../src/store/holds/post-hold-entries.ts';
import type { HoldEntry, HoldOutcome } from '../../src/store/holds/hold-entry.ts';
import {
  DEVELOPER_ID,
  newDraft,
  RECEIPT_KEY,
  replayWindow,
  type Consumer,
} from './charge-drafts.ts';

const NO_KEY = { idempotencyHash: null, fingerprint: null } as const;
const DEVELOPER = { developerId: DEVELOPER_ID, developerNumber: 1 } as const;

export function placing(consumer: Consumer, amountMicros: number): HoldEntry {
  return { ...newDraft(consumer, amountMicros), kind: 'place', seconds: HOLD_SECONDS_DEFAULT };
}

/** Everything that is left, and the rest released. */
export function capturing(
  holdId: string,
  changes: Partial<Extract<HoldEntry, { kind: 'capture' }>> = {},
): HoldEntry {
  return {
    ...NO_KEY,
    ...DEVELOPER,
    kind: 'capture',
    id: randomUUIDv7(),
    holdId,
    amountMicros: null,
    cardVersion: 0,
    isFinal: true,
    over: 'reject',
    metadata: null,
    ...changes,
  };
}

export function releasing(holdId: string): HoldEntry {
  return { ...NO_KEY, ...DEVELOPER, kind: 'release', holdId };
}

export function extending(holdId: string, seconds: number): HoldEntry {
  return { ...NO_KEY, ...DEVELOPER, kind: 'extend', holdId, seconds };
}

export async function postEntries(
  database: Database,
  entries: readonly HoldEntry[],
): Promise<HoldOutcome[]> {
  const outcomes = await store.postFittingEntries(database, entries, RECEIPT_KEY, replayWindow());
  return Promise.all(
    outcomes.map(
      async (outcome, index) =>
        (outcome ?? (await settle(database, entries[index]))) as HoldOutcome,
    ),
  );
}

async function settle(database: Database, entry: HoldEntry | undefined) {
  const [outcome] = await store.postEntries(
    database,
    entry ? [entry] : [],
    RECEIPT_KEY,
    replayWindow(),
  );
  return outcome;
}

/** The ids of holds that could all be placed. */
export async function placeAll(
  database: Database,
  entries: readonly HoldEntry[],
): Promise<string[]> {
  const outcomes = await postEntries(database, entries);
  return outcomes.map((outcome) => {
    assert.ok(outcome.kind === 'done', outcome.kind);
    return outcome.hold.id;
  });
}

export async function capturable(
  database: Database,
  consumer: Consumer,
  amountMicros: number,
): Promise<string> {
  const [id = ''] = await placeAll(database, [placing(consumer, amountMicros)]);
  return id;
}

/** Expected of consumers that an insert created and credited: they have no account, lots or movements. */
const OF_CREDITS: readonly string[] = [
  'each account has one consumer, and each consumer one account',
  'a charge names a developer',
  'a charge left a balance that was credited',
  'credited is the sum of movements',
  'lots are contiguous and end at credited',
];

export async function proveHolds(database: Database): Promise<void> {
  const findings = await examineLedger(database);
  assert.deepEqual(
    findings.filter(({ check }) => !OF_CREDITS.some((other) => other === check)),
    [],
  );
}

export const micros = (value: number) => asMicros(value);
