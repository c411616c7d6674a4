/**
 * Asking for an approval. The caller does not say what was refused: the service determines what refuses the
 * call now, so nobody can ask the owner about a budget that has room, or in the name of a key that they do
 * not hold.
 */
import { findKeyOwner } from '../../../charging/find-key-owner.ts';
import { ASK_SECONDS_DEFAULT, type Asker } from '../../../domain/approval.ts';
import { ApiError } from '../../../domain/errors.ts';
import { uuidOf } from '../../../domain/ids.ts';
import { isSameMode, modeOf } from '../../../domain/mode.ts';
import type { Micros } from '../../../domain/money.ts';
import type { ApprovalBody, ApprovalReply } from '../../../schemas/approvals.ts';
import type { KeyOwner } from '../../../store/accounts/api-keys.ts';
import { findDeveloperNumber } from '../../../store/accounts/find-accounts.ts';
import { askApproval } from '../../../store/approvals/ask-approval.ts';
import { findRefusing, type Refusing } from '../../../store/approvals/find-refusal.ts';
import { amountOf, CHARGEABLE } from '../../amounts.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';
import { noSuch } from '../../look-ups.ts';
import type { Api } from '../../services.ts';
import { refusalError } from '../charges/charge-errors.ts';
import { wireApproval } from './approvals.ts';

/** 201, or 200 with the approval that the same question has already. */
export async function postApproval(
  api: Api,
  { caller, body }: Request<ApprovalBody>,
): Promise<Reply<ApprovalReply, 200 | 201>> {
  const call = await callOf(api, caller, body);
  const { payer } = call;
  const asked = await askApproval(api.database, {
    ledger: payer.ledger,
    consumerId: payer.consumerId,
    accountId: payer.accountId,
    spendKey: payer.spend?.number ?? 0,
    developerNumber: call.developerNumber,
    developerId: call.developerId,
    tool: call.tool,
    amountMicros: call.amountMicros,
    askedBy: call.askedBy,
    reason: body.reason ?? '',
    expiresInSeconds: body.expiresIn ?? ASK_SECONDS_DEFAULT,
    ...(await refusalOf(api, call)),
  });
  if (asked.kind === 'too_many') {
    throw new ApiError(
      'too_many_approvals',
      `This ${asked.of} has too many requests for approval that are pending or less than an hour old. Try again later.`,
    );
  }
  const status = asked.kind === 'asked' ? 201 : 200;
  return { status, body: wireApproval(api, caller, asked.approval) };
}

interface Call {
  readonly payer: KeyOwner;
  readonly askedBy: Asker;
  readonly developerId: string;
  readonly developerNumber: number;
  readonly tool: string;
  readonly amountMicros: Micros;
}

async function callOf(api: Api, caller: KeyOwner, body: ApprovalBody): Promise<Call> {
  const asked =
    caller.kind === 'developer'
      ? await byDeveloper(api, caller, body)
      : await byPayer(api, caller, body);
  // A key that its owner guards asks as it pays: not at all if it is closed, else about the developer's budget.
  const payer = await api.guards.payerOf(asked.payer, asked);
  if (!payer) throw refusalError(api, { kind: 'account_keys_closed' });
  const parties = { ...asked, payer };
  const { tool, amount } = body;
  if (amount !== undefined) {
    return { ...parties, tool, amountMicros: amountOf('amount', amount, CHARGEABLE) };
  }
  const price = await api.tools.currentPriceOf(parties.developerId, tool, undefined);
  if (typeof price === 'number') return { ...parties, tool, amountMicros: price };
  throw new ApiError('invalid_amount', 'The tool has no current price, so amount is required.', {
    param: 'amount',
  });
}

type Parties = Omit<Call, 'tool' | 'amountMicros'>;

async function byDeveloper(api: Api, developer: KeyOwner, body: ApprovalBody): Promise<Parties> {
  if (body.developerId !== undefined) throw misplaced('developerId', 'a consumer key or spend key');
  const payer =
    body.apiKey === undefined ? undefined : await findKeyOwner(api, body.apiKey, 'payer');
  if (!payer) throw refusalError(api, { kind: 'invalid_api_key' });
  if (!isSameMode(payer, developer)) throw refusalError(api, { kind: 'mode_mismatch' });
  const { developerId, developerNumber } = developer;
  return { payer, askedBy: 'developer', developerId, developerNumber };
}

async function byPayer(api: Api, payer: KeyOwner, body: ApprovalBody): Promise<Parties> {
  if (body.apiKey !== undefined) throw misplaced('apiKey', 'a secret key');
  const developerId = body.developerId && uuidOf('developer', body.developerId);
  if (!developerId) {
    throw invalidField('developerId', 'developerId must name the developer that was called.');
  }
  const developerNumber = await findDeveloperNumber(api.database, developerId, modeOf(payer));
  if (developerNumber === null) {
    throw noSuch('developer', 'developerId');
  }
  return { payer, askedBy: 'payer', developerId, developerNumber };
}

function misplaced(param: string, key: string): ApiError {
  return invalidField(param, `${param} is only for requests with ${key}.`);
}

/** What refuses the call; throws if nothing does, or if no owner can change it. */
async function refusalOf(api: Api, call: Call): Promise<Refusing> {
  const { payer } = call;
  const decision = payer.spend ? await api.budgets.refusalOf(payer, call) : undefined;
  const refusal = decision?.kind === 'needs_approval' ? decision.refusal : decision;
  // What an owner can allow is looked up: memory is a second late.
  if (refusal && refusal.kind !== 'approval_required' && refusal.kind !== 'limit_reached') {
    throw refusalError(api, refusal);
  }
  const { ledger, consumerId, spend } = payer;
  const found = await findRefusing(api.database, { ...call, ledger, consumerId, spend });
  if (found) return found;
  throw new ApiError(
    'approval_not_needed',
    'Nothing refuses this call, so it needs no approval. Charge again.',
  );
}
