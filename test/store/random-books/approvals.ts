/** Approvals of what budgets refuse: asked for, answered, and used at most once. */
import assert from 'node:assert/strict';
import { asMicros } from '../../../src/domain/money.ts';
import { askApproval } from '../../../src/store/approvals/ask-approval.ts';
import { decideApproval, type Answer } from '../../../src/store/approvals/decide-approval.ts';
import {
  findRefusing,
  type RefusedCall,
  type Refusing,
} from '../../../src/store/approvals/find-refusal.ts';
import { settleApprovals } from '../../../src/store/approvals/settle-approvals.ts';
import type { ChargeDraft } from '../../../src/store/charges/post-charges.ts';
import { postSpends } from '../../../src/store/charges/post-spends.ts';
import { countRow, sql } from '../../../src/store/database.ts';
import { newDraft, RECEIPT_KEY, replayWindow } from '../../support/charge-drafts.ts';
import type { Random } from '../../support/random.ts';
import type { Books, Owner } from './books.ts';
import { byUnits } from './by-units.ts';
import { draftOf, record } from './charges.ts';

const ASKED_SECONDS = 600;
const CALLS_MOST = 8;

/** Looks for a call that a budget refuses, asks for it, answers, and makes it if every budget allows it once. */
export async function approve(books: Books, owner: Owner, random: Random): Promise<void> {
  for (let n = 0; n < CALLS_MOST; n += 1) {
    const key = random.pick(owner.spendKeys);
    const [draft] = await byUnits(books, [draftOf(books, owner, random, { key })], random);
    assert.ok(draft);
    const call = { ...draft, spend: key.spend };
    const refusing = await findRefusing(books.database, call);
    if (!refusing || refusing.budget === null) continue;
    const answer = answerTo(refusing.scope !== null, random);
    await answerOne(books, owner, call, refusing, answer);
    if (answer.kind !== 'once') return;
    await allowOnce(books, owner, call, refusing);
    return spendOnce(books, draft);
  }
}

type Call = ChargeDraft & RefusedCall & { readonly spend: NonNullable<ChargeDraft['spend']> };

async function answerOne(
  books: Books,
  { accountId }: Owner,
  call: Call,
  refusing: Refusing,
  answer: Answer,
): Promise<void> {
  const asked = await askApproval(books.database, {
    ...call,
    ...refusing,
    accountId,
    spendKey: call.spend.number,
    askedBy: 'payer',
    reason: '',
    expiresInSeconds: ASKED_SECONDS,
  });
  books.count(`ask for approval ${asked.kind}`);
  if (asked.kind === 'too_many') return forgetAsked(books);
  const { kind } = await decideApproval(books.database, asked.approval.id, answer);
  books.count(`answer ${answer.kind} ${kind}`);
}

const nameOf = ({ budget, scope }: Refusing) => `${budget} ${scope}`;

/** The other limits that refuse the call, too. */
async function allowOnce(books: Books, owner: Owner, call: Call, first: Refusing): Promise<void> {
  const allowed = new Set([nameOf(first)]);
  for (;;) {
    const refusing = await findRefusing(books.database, call);
    if (!refusing || refusing.budget === null || allowed.has(nameOf(refusing))) return;
    allowed.add(nameOf(refusing));
    await answerOne(books, owner, call, refusing, { kind: 'once' });
  }
}

function answerTo(canRaise: boolean, random: Random): Answer {
  const kind = random.weighted({ once: 7, always: 1, raise: canRaise ? 4 : 0, deny: 1 });
  return kind === 'raise'
    ? { kind, limitMicros: asMicros(random.between(1, 1_000_000)) }
    : { kind };
}

/**
 * Makes the call twice. A budget that refused the first one has no room for the second one either: each that is made
 * uses an approval, unless somebody changes the budget at the same time.
 */
async function spendOnce(books: Books, draft: ChargeDraft): Promise<void> {
  const { isAlone } = books;
  const before = await countUnused(books);
  const drafts = [1, 2].map(() => ({
    ...draft,
    id: newDraft(draft, draft.amountMicros).id,
    idempotencyHash: null,
    fingerprint: null,
    needsApproval: true,
  }));
  const outcomes = await postSpends(books.database, drafts, RECEIPT_KEY, replayWindow());
  for (const [index, each] of drafts.entries()) {
    record(books, `approved call ${index + 1}`, each, outcomes[index]);
  }
  const made = outcomes.filter(({ kind }) => kind === 'posted').length;
  if (!isAlone || made === 0) return;
  books.count('approved call alone');
  assert.ok(made <= before - (await countUnused(books)), `${made} calls without approvals`);
}

function countUnused({ database }: Books): Promise<number> {
  return database.oneFirst(sql.type(countRow)`
    select count(*) as count from farebox.approvals where decision = 'once' and used_by is null
  `);
}

/** So that more can be asked for in this hour. */
async function forgetAsked(books: Books): Promise<void> {
  await books.change(sql.fragment`
    update farebox.approvals set created_at = created_at - interval '2 hours'
  `);
}

/** Ends requests that a raised limit or a top-up has answered. */
export async function endAnswered(books: Books, { accountId }: Owner): Promise<void> {
  const ended = await settleApprovals(books.database, { accountId });
  books.count(`end answered ${ended > 0 ? 'some' : 'none'}`);
}
