/** Asks for an approval: its row, and the notice that starts its workflow. The same question gets the same approval. */
import { Type } from 'typebox';
import {
  ASKS_OF_KEY_MAX,
  DENIED_SECONDS,
  ONCE_HOURS,
  ASKS_OF_ACCOUNT_MAX,
  ASKS_OF_BUDGET_MAX,
  type AskableCode,
  type Asker,
} from '../../domain/approval.ts';
import type { Micros } from '../../domain/money.ts';
import { lockAccount } from '../accounts/accounts.ts';
import type { ConsumerRef } from '../balance/consumers.ts';
import { type Database, idRow, row, sql, type Transaction } from '../database.ts';
import { idFloorOf, newIdOf } from '../database-ids.ts';
import { postNotice } from '../outbox.ts';
import { findApproval, type Approval } from './approval.ts';
import type { Refusing } from './find-refusal.ts';
import { settleApprovals } from './settle-approvals.ts';

export interface Ask extends ConsumerRef, Omit<Refusing, 'code'> {
  readonly accountId: string;
  /** The number of the key that is to pay; 0 for a key of the account. */
  readonly spendKey: number;
  readonly developerNumber: number;
  readonly developerId: string;
  readonly tool: string;
  readonly amountMicros: Micros;
  readonly code: AskableCode;
  readonly askedBy: Asker;
  readonly reason: string;
  readonly expiresInSeconds: number;
}

export type AskResult =
  | { readonly kind: 'asked' | 'known'; readonly approval: Approval }
  | { readonly kind: 'too_many'; readonly of: 'key' | 'budget' | 'balance' | 'account' };

/** A request waits for a week at most, and its answer counts for one more day. A day is left for slow transactions. */
const COUNTS_FOR_DAYS = 9;
/** Older rows cannot matter, and are not read. */
const MAY_COUNT = sql.fragment`
  id > ${idFloorOf(sql.fragment`now() - make_interval(days => ${COUNTS_FOR_DAYS})`)}
`;

const countsRow = row(
  Type.Object({ key: Type.Integer(), budget: Type.Integer(), account: Type.Integer() }),
);

export async function askApproval(database: Database, ask: Ask): Promise<AskResult> {
  return database.transaction(async (tx) => {
    await lockAccount(tx, ask.accountId);
    await settleApprovals(tx, { accountId: ask.accountId });
    const known = await findSame(tx, ask);
    if (known) return { kind: 'known', approval: await get(tx, known) };
    const of = await limitReachedBy(tx, ask);
    if (of) return { kind: 'too_many', of };
    const id = await tx.oneFirst(sql.type(idRow)`
      insert into farebox.approvals (id, account_id, ledger, consumer_id, spend_key, developer, developer_id,
        tool, amount_micros, code, budget, scope, limit_micros, asked_by, reason, expires_at)
      values (${newIdOf(ask.consumerId)}, ${ask.accountId}, ${ask.ledger}, ${ask.consumerId}, ${ask.spendKey}, ${ask.developerNumber},
        ${ask.developerId}, ${ask.tool}, ${ask.amountMicros}, ${ask.code}, ${ask.budget}, ${ask.scope},
        ${ask.limitMicros}, ${ask.askedBy}, ${ask.reason}, now() + make_interval(secs => ${ask.expiresInSeconds}))
      returning id
    `);
    await postNotice(tx, 'approval', id, { ledger: ask.ledger });
    return { kind: 'asked', approval: await get(tx, id) };
  });
}

/** Pending, approved once and not yet used, or denied recently. */
async function findSame(tx: Transaction, ask: Ask): Promise<string | null> {
  return tx.maybeOneFirst(sql.type(idRow)`
    select id from farebox.approvals
    where account_id = ${ask.accountId} and ${MAY_COUNT}
      and spend_key = ${ask.spendKey} and developer = ${ask.developerNumber}
      and tool = ${ask.tool} and amount_micros = ${ask.amountMicros} and code = ${ask.code}
      and budget is not distinct from ${ask.budget} and scope is not distinct from ${ask.scope}
      and (status = 'pending'
        or (decision = 'once' and used_by is null and decided_at > now() - make_interval(hours => ${ONCE_HOURS}))
        or (status = 'denied' and decided_at > now() - make_interval(secs => ${DENIED_SECONDS})))
    order by id desc limit 1
  `);
}

async function limitReachedBy(
  tx: Transaction,
  { accountId, spendKey, developerNumber, askedBy, budget }: Ask,
): Promise<'key' | 'budget' | 'balance' | 'account' | undefined> {
  // Developers that see a key are counted separately from its holder, and one by one: they use up no limit of the
  // holders, and none of them uses up that of the key.
  const ofKey = sql.fragment`
    spend_key = ${spendKey} and (asked_by = 'payer' or developer = ${developerNumber})`;
  const counts = await tx.one(sql.type(countsRow)`
    select count(*) filter (where ${ofKey}) as key,
      count(*) filter (where budget is not distinct from ${budget}::int4) as budget,
      count(*) as account
    from farebox.approvals
    where account_id = ${accountId} and asked_by = ${askedBy} and ${MAY_COUNT}
      and (status = 'pending' or created_at > now() - interval '1 hour')
  `);
  if (counts.key >= ASKS_OF_KEY_MAX) return 'key';
  if (counts.budget >= ASKS_OF_BUDGET_MAX) return budget === null ? 'balance' : 'budget';
  return counts.account >= ASKS_OF_ACCOUNT_MAX ? 'account' : undefined;
}

async function get(tx: Transaction, id: string): Promise<Approval> {
  const approval = await findApproval(tx, id);
  if (!approval) throw new Error('an approval was written and is not there');
  return approval;
}
