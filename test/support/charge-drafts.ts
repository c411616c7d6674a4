/** Consumers and charges in the form of the charge statement, without accounts and keys. */
import { randomBytes, randomUUIDv7 } from 'node:crypto';
import type { Client } from 'pg';
import { DAY_MS } from '../../src/domain/durations.ts';
import { uuidFloor } from '../../src/domain/ids.ts';
import { asMicros } from '../../src/domain/money.ts';
import {
  postCharges,
  postFittingCharges,
  type ChargeDraft,
  type ChargeOutcome,
} from '../../src/store/charges/post-charges.ts';
import type { Connection } from '../../src/store/database.ts';

export const RECEIPT_KEY = 1;
export const DEVELOPER_ID = '01900000-0000-7000-8000-000000000001';

export interface Consumer {
  readonly ledger: number;
  readonly consumerId: string;
}

export async function newConsumers(
  client: Client,
  count: number,
  creditedMicros: number,
): Promise<Consumer[]> {
  const consumers = Array.from({ length: count }, (_, index) => ({
    ledger: index % 2,
    consumerId: randomUUIDv7(),
  }));
  for (const { ledger, consumerId } of consumers) {
    await client.query(
      'insert into farebox.consumers (ledger, id, credited_micros) values ($1, $2, $3)',
      [ledger, consumerId, creditedMicros],
    );
  }
  return consumers;
}

export function newDraft({ ledger, consumerId }: Consumer, amountMicros: number): ChargeDraft {
  return {
    id: randomUUIDv7(),
    ledger,
    consumerId,
    developerId: DEVELOPER_ID,
    developerNumber: 1,
    tool: 'search',
    amountMicros: asMicros(amountMicros),
    idempotencyHash: null,
    fingerprint: null,
    metadata: null,
    spend: null,
  };
}

/** A unique idempotency key, and one body. */
export function newKey(): { readonly idempotencyHash: string; readonly fingerprint: string } {
  return { idempotencyHash: randomBytes(11).toString('hex'), fingerprint: '0000000001' };
}

/** By both statements, like the batcher. */
export async function post(
  connection: Connection,
  drafts: readonly ChargeDraft[],
): Promise<ChargeOutcome[]> {
  const outcomes = await postFittingCharges(connection, drafts, RECEIPT_KEY, replayWindow());
  const left = drafts.filter((_, index) => outcomes[index] === undefined);
  if (left.length === 0) return outcomes as ChargeOutcome[];
  const decided = await postCharges(connection, left, RECEIPT_KEY, replayWindow());
  return outcomes.map((outcome) => outcome ?? (decided.shift() as ChargeOutcome));
}

/** The days of charges among which keys are looked up. */
export function replayWindow(): { readonly fromId: string; readonly toId: string } {
  const now = Date.now();
  return { fromId: uuidFloor(now - DAY_MS), toId: uuidFloor(now + DAY_MS) };
}
