/**
 * The statement that decides entries one by one: holds, their captures and releases, and charges that did not
 * simply fit. Everything that decides about money is in migrations/functions/post_entries_2.sql; this file
 * carries arrays.
 */
import { OVER_MODES } from '../../domain/hold.ts';
import { NIL_UUID } from '../../domain/ids.ts';
import type { Micros } from '../../domain/money.ts';
import type { LimitRow } from '../budgets/budget.ts';
import { int2Array, int4Array, int8Array, textArray, uuidArray } from '../charges/binary-arrays.ts';
import { identityColumns } from '../charges/identity.ts';
import type { ChargeDraft, ReplayWindow } from '../charges/post-charges.ts';
import { sql, unchecked, type Connection } from '../database.ts';
import type { HoldEntry, Outcomes } from './hold-entry.ts';

export type ChargeEntry = ChargeDraft & { readonly kind: 'charge' };
export type LedgerEntry = HoldEntry | ChargeEntry;

/** What `post_entries_2` says of an entry of this kind. */
export interface EntryRow<Kind extends keyof Outcomes = keyof Outcomes> extends LimitRow {
  readonly ord: number;
  readonly outcome: Exclude<Outcomes[Kind]['kind'], 'posted'> | 'done' | 'owing';
  readonly charge_id: string;
  readonly amount: Micros;
  readonly balance: Micros;
  readonly signed_by: number;
  readonly card: number;
  readonly hold_id: string | null;
  readonly ledger: number;
  readonly consumer: string;
  readonly tool: string;
  readonly hold_amount: Micros;
  readonly captured: Micros;
  readonly remaining: Micros;
  readonly state: number;
  readonly placed_at: string;
  readonly expires_at: string;
}

const NEEDS_APPROVAL = 3;
const KINDS = { place: 1, capture: 2, release: 3, extend: 4, charge: 5 } as const;

/** What the function should do with more than is held, or with a refusal from memory. */
function overOf(entry: LedgerEntry): number {
  if ('needsApproval' in entry && entry.needsApproval) return NEEDS_APPROVAL;
  return entry.kind === 'capture' ? OVER_MODES.indexOf(entry.over) : 0;
}

/**
 * What to do with an entry that would release money to a consumer with a debt. `left`: its outcome is
 * `owing`, and nothing changes. `decided`: it is decided, and the caller repays the debt in the same
 * transaction.
 */
type Owing = 'left' | 'decided';

/** An entry with what was decided about it. */
interface Decided<Entry extends LedgerEntry> {
  readonly entry: Entry;
  readonly found: EntryRow<Entry['kind']>;
}

/** In the order of the entries, in one commit. The caller ensures that no idempotency hash occurs twice. */
export async function decideEntries<Entry extends LedgerEntry>(
  connection: Connection,
  entries: readonly Entry[],
  receiptKey: number,
  replay: ReplayWindow,
  owing: Owing,
): Promise<readonly Decided<Entry>[]> {
  /** Holds that are placed, and charges. */
  const asked = <T>(read: (entry: ChargeDraft) => T, other: T) =>
    entries.map((entry: LedgerEntry) => ('consumerId' in entry ? read(entry) : other));
  const captured = <T>(read: (entry: HoldEntry & { kind: 'capture' }) => T, other: T) =>
    entries.map((entry: LedgerEntry) => (entry.kind === 'capture' ? read(entry) : other));
  const columns = [
    int2Array(entries.map(({ kind }) => KINDS[kind])),
    uuidArray(entries.map((entry) => ('id' in entry ? entry.id : NIL_UUID))),
    uuidArray(entries.map((entry) => ('holdId' in entry ? entry.holdId : NIL_UUID))),
    int2Array(asked(({ ledger }) => ledger, 0)),
    uuidArray(asked(({ consumerId }) => consumerId, NIL_UUID)),
    int4Array(asked(({ spend }) => spend?.number ?? 0, 0)),
    int4Array(entries.map(({ developerNumber }) => developerNumber)),
    textArray(asked(({ tool }) => tool, '')),
    int8Array(entries.map((entry) => ('amountMicros' in entry ? (entry.amountMicros ?? 0) : 0))),
    int4Array(entries.map((entry) => ('seconds' in entry ? entry.seconds : 0))),
    int2Array(captured(({ isFinal }) => Number(isFinal), 1)),
    int2Array(entries.map(overOf)),
    int2Array(entries.map((entry) => ('cardVersion' in entry ? (entry.cardVersion ?? 0) : 0))),
    ...identityColumns(entries),
    textArray(entries.map((entry) => ('metadata' in entry ? entry.metadata : null))),
  ];
  const rowOf = unchecked<EntryRow<Entry['kind']>>();
  const rows = await connection.any(sql.prepared('post_entries_2', rowOf)`
    select * from farebox.post_entries_2(
      ${sql.join(
        columns.map((column) => sql.binary(column)),
        sql.fragment`, `,
      )},
      ${receiptKey}::int2, ${replay.fromId}::uuid, ${replay.toId}::uuid, ${owing === 'decided'}::boolean)
  `);
  return entries.map((entry, index) => {
    const found = rows[index];
    if (found?.ord !== index + 1) {
      throw new Error(`${entries.length} entries asked, ${rows.length} decided`);
    }
    return { entry, found };
  });
}
