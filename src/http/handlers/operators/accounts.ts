/** Accounts as operators see them: found by any clue, and why their balance is what it is. */
import { uuidOf, wireId, uuidTime } from '../../../domain/ids.ts';
import { asMicros, dollarsOf } from '../../../domain/money.ts';
import { FOUND_MAX } from '../../../domain/operators.ts';
import type {
  AccountReply,
  AccountsQuery,
  AccountsReply,
  MovementsReply,
  OperatorChargeReply,
  OperatorChargesReply,
  OperatorHoldsReply,
  OperatorTopUpsReply,
} from '../../../schemas/operators.ts';
import type { PageQuery } from '../../../schemas/shapes.ts';
import { findAccount, type Account } from '../../../store/accounts/accounts.ts';
import { findAccounts, type AccountClue } from '../../../store/accounts/find-accounts.ts';
import { listActionsOn } from '../../../store/operators/operator-actions.ts';
import { getBooks, listMovements } from '../../../store/balance/account-books.ts';
import {
  findAnyCharge,
  listConsumerCharges,
  type StoredCharge,
} from '../../../store/charges/list-charges.ts';
import { listHolds } from '../../../store/holds/list-holds.ts';
import { findProcessorCustomer } from '../../../store/top-ups/processor-customers.ts';
import { listRefundable } from '../../../store/top-ups/request-refund.ts';
import { listTopUpsOf } from '../../../store/top-ups/top-ups.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { listPage } from '../../pagination.ts';
import type { Api } from '../../services.ts';
import { wireHold } from '../holds/holds.ts';
import { topUpWorkflowId } from '../../../temporal/start-top-up.ts';
import { idIn, noSuch } from '../../look-ups.ts';
import { customerUrlOf, linksOf } from './links.ts';

const ACTIONS_MAX = 20;

export async function getAccounts(
  api: Api,
  { query }: Request<undefined, AccountsQuery>,
): Promise<Reply<AccountsReply>> {
  const clue = clueOf(query.query.trim());
  const found = await findAccounts(api.database, clue, FOUND_MAX);
  const accounts = found.map(
    ({ id, email, consumerId, developerId, balanceMicros, createdAt }) => ({
      id: wireId('account', id),
      email,
      consumerId: wireId('consumer', consumerId),
      developerId: wireId('developer', developerId),
      balance: dollarsOf(balanceMicros),
      createdAt,
    }),
  );
  return { status: 200, body: { accounts } };
}

function clueOf(text: string): AccountClue {
  const uuid = uuidOf('account', text) ?? uuidOf('consumer', text) ?? uuidOf('developer', text);
  if (uuid !== undefined) return { kind: 'uuid', uuid };
  for (const kind of ['topUp', 'charge', 'budget', 'key'] as const) {
    const named = uuidOf(kind, text);
    if (named !== undefined) return { kind, uuid: named };
  }
  if (/^(pi|cs|cus)_\w+$/.test(text)) return { kind: 'processor', id: text };
  return { kind: 'email', start: text };
}

export async function getAccount(api: Api, { params }: Request): Promise<Reply<AccountReply>> {
  const account = await accountOf(api, params);
  const [books, actions, customerId] = await Promise.all([
    getBooks(api.database, account),
    listActionsOn(api.database, account.id, ACTIONS_MAX),
    findProcessorCustomer(api.database, account.id),
  ]);
  const { consentCeilingMicros } = account;
  return {
    status: 200,
    body: {
      id: wireId('account', account.id),
      email: account.email,
      consumerId: wireId('consumer', account.consumerId),
      developerId: wireId('developer', account.developerId),
      createdAt: account.createdAt,
      balance: dollarsOf(asMicros(books.creditedMicros - books.spentMicros - books.heldMicros)),
      debt: dollarsOf(books.debtMicros),
      credited: dollarsOf(books.creditedMicros),
      spent: dollarsOf(books.spentMicros),
      refunded: dollarsOf(books.refundedMicros),
      heldByHolds: dollarsOf(books.heldByHoldsMicros),
      heldByDisputes: dollarsOf(books.heldByDisputesMicros),
      openHolds: books.openHolds,
      movements: books.movements.map(({ kind, count, amountMicros }) => ({
        kind,
        count,
        amount: dollarsOf(asMicros(amountMicros)),
      })),
      consentCeiling: consentCeilingMicros === null ? null : dollarsOf(consentCeilingMicros),
      processorUrl: customerUrlOf(api, customerId),
      actions: actions.map((action) => ({
        kind: action.kind,
        amount: dollarsOf(action.amountMicros),
        topUpId: action.topUpId && wireId('topUp', action.topUpId),
        reason: action.reason,
        failure: action.failure,
        operator: action.operatorEmail,
        createdAt: action.createdAt,
      })),
    },
  };
}

export async function getMovements(
  api: Api,
  { params, query }: Request<undefined, PageQuery>,
): Promise<Reply<MovementsReply>> {
  const account = await accountOf(api, params);
  const { rows, ...marks } = await listPage(query, 'movement', (page) =>
    listMovements(api.database, account, page),
  );
  const movements = rows.map(({ id, kind, amountMicros, topUpId, reason, createdAt }) => ({
    id: wireId('movement', id),
    kind,
    amount: dollarsOf(amountMicros),
    topUpId: topUpId && wireId('topUp', topUpId),
    reason,
    createdAt,
  }));
  return { status: 200, body: { movements, ...marks } };
}

export async function getTopUpsOfAccount(
  api: Api,
  { params, query }: Request<undefined, PageQuery>,
): Promise<Reply<OperatorTopUpsReply>> {
  const consumer = await accountOf(api, params);
  const { rows, ...marks } = await listPage(query, 'topUp', (page) =>
    listTopUpsOf(api.database, consumer.consumerId, page),
  );
  const refundable = rows.filter(({ isRefundable }) => isRefundable).map(({ id }) => id);
  const unspent = await listRefundable(api.database, consumer, refundable);
  const topUps = rows.map((topUp) => ({
    id: wireId('topUp', topUp.id),
    amount: dollarsOf(topUp.amountMicros),
    refunded: dollarsOf(topUp.refundedMicros),
    refundable: topUp.isRefundable,
    refundableAmount: dollarsOf(unspent.get(topUp.id) ?? asMicros(0)),
    status: topUp.status,
    method: topUp.method,
    automatic: topUp.automatic,
    failure: topUp.failureMessage,
    failedRefund: topUp.failedRefund && {
      amount: dollarsOf(topUp.failedRefund.amountMicros),
      failure: topUp.failedRefund.message,
    },
    createdAt: topUp.createdAt,
    completedAt: topUp.completedAt,
    ...(topUp.method === 'manual'
      ? NO_LINKS
      : linksOf(api, topUpWorkflowId(api.config.temporal, topUp.id), topUp)),
  }));
  return { status: 200, body: { topUps, ...marks } };
}

/** Credited manually: there is neither a workflow nor a payment. */
const NO_LINKS = { temporalUrl: null, processorUrl: null };

/** Without receipts, which are for the two parties of a charge. */
export async function getChargesOfAccount(
  api: Api,
  { params, query }: Request<undefined, PageQuery>,
): Promise<Reply<OperatorChargesReply>> {
  const account = await accountOf(api, params);
  const { rows, ...marks } = await listPage(query, 'charge', (page) =>
    listConsumerCharges(api.database, account, {}, page),
  );
  return { status: 200, body: { charges: rows.map(wireCharge), ...marks } };
}

/** A customer quotes its id. */
export async function getChargeOfAny(
  api: Api,
  { params }: Request,
): Promise<Reply<OperatorChargeReply>> {
  const id = idIn('charge', params);
  const found = id && (await findAnyCharge(api.database, id));
  if (!found) throw noSuch('charge');
  const consumerId = wireId('consumer', found.consumerId);
  return { status: 200, body: { ...wireCharge(found), consumerId } };
}

function wireCharge({ id, tool, amountMicros, refundedMicros, developerId }: StoredCharge) {
  return {
    id: wireId('charge', id),
    tool,
    amount: dollarsOf(amountMicros),
    refunded: dollarsOf(refundedMicros),
    developerId: wireId('developer', developerId),
    createdAt: uuidTime(id),
  };
}

export async function getHoldsOfAccount(
  api: Api,
  { params, query }: Request<undefined, PageQuery>,
): Promise<Reply<OperatorHoldsReply>> {
  const account = await accountOf(api, params);
  const { rows, ...marks } = await listPage(query, 'hold', (page) =>
    listHolds(api.database, { ...account, kind: 'consumer' }, undefined, page),
  );
  return {
    status: 200,
    body: { holds: rows.map((hold) => wireHold(hold, hold.developerId)), ...marks },
  };
}

export async function accountOf(
  api: Api,
  params: Readonly<Record<string, string>>,
): Promise<Account> {
  const uuid = idIn('account', params);
  const account = uuid && (await findAccount(api.database, { uuid }));
  if (!account) throw noSuch('account');
  return account;
}
