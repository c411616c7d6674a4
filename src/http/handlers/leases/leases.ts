/** Leases: reserve money that a client spends by itself, settle its calls in batches, renew the lease or release it. */
import { mapInSlices } from '../../../charging/map-in-slices.ts';
import { receiptPayload } from '../../../charging/receipts.ts';
import {
  requestLease,
  requestRenewal,
  requestSettlement,
  type LeaseRefusal,
  type SettleRequest,
} from '../../../charging/lease-requests.ts';
import { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import { isSequence } from '../../../domain/lease.ts';
import { isTest } from '../../../domain/mode.ts';
import { dollarsOf, formatDollars } from '../../../domain/money.ts';
import {
  SettlementEntry,
  type LeaseBody,
  type LeaseReply,
  type LeasesReply,
  type PlacedLeaseReply,
  type RenewBody,
  type SettlementEnvelope,
  type SettlementMember,
  type SettlementReply,
} from '../../../schemas/leases.ts';
import type { PageQuery } from '../../../schemas/shapes.ts';
import type { KeyOwner } from '../../../store/accounts/api-keys.ts';
import type { HoldOwner } from '../../../store/holds/list-holds.ts';
import { findLease, listLeases, type Lease } from '../../../store/leases/lease.ts';
import type { SettledOutcome } from '../../../store/leases/settle-lease.ts';
import { errorBody } from '../../answer-errors.ts';
import { amountOf, CHARGEABLE } from '../../amounts.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';
import { idIn } from '../../look-ups.ts';
import { listPage } from '../../pagination.ts';
import { mayBeArchived } from '../../refuse-archived.ts';
import { keyReused } from '../../repeated-requests.ts';
import { REPLAYED } from '../../respond.ts';
import type { Api } from '../../services.ts';
import { bodyValidator } from '../../validation.ts';
import { insufficientBalance, refusalError } from '../charges/charge-errors.ts';

/** 201; `Idempotency-Replayed: true` when this key has already placed the lease. */
export async function postLease(
  api: Api,
  { caller, body, idempotencyKey }: Request<LeaseBody>,
): Promise<Reply<PlacedLeaseReply, 201>> {
  const tools = body.tools.map((tool, n) => {
    const { name, price } = typeof tool === 'string' ? { name: tool, price: undefined } : tool;
    const askedMicros =
      price === undefined ? null : amountOf(`tools.${n}.price`, price, CHARGEABLE);
    return { name, askedMicros };
  });
  refuseTwice(tools.map(({ name }) => name));
  const amountMicros = amountOf('amount', body.amount, CHARGEABLE);
  const { apiKey, expiresIn } = body;
  const asked = { developer: caller, apiKey, tools, amountMicros, expiresIn, idempotencyKey };
  const placed = await requestLease(api, asked);
  switch (placed.kind) {
    case 'done':
    case 'replayed': {
      const balance = dollarsOf(placed.balanceMicros);
      const reply = { status: 201, body: { ...wireLease(placed.lease), balance } } as const;
      return placed.kind === 'replayed' ? { ...reply, headers: REPLAYED } : reply;
    }
    case 'insufficient': {
      const { developerId } = caller;
      const { consumerId, requiredMicros: amountMicros, balanceMicros } = placed;
      throw insufficientBalance(api, { consumerId, developerId, amountMicros }, balanceMicros);
    }
    case 'key_closed':
      throw refusalError(api, { kind: 'invalid_api_key' });
    case 'key_reused':
      throw keyReused();
    case 'refused':
      throw leaseError(api, placed.refusal);
    case 'limit_reached':
      throw leaseError(api, placed);
  }
}

/** 200 with the lease, which ends later and has another fence. */
export async function postRenewal(
  api: Api,
  { caller, params, body, idempotencyKey }: Request<RenewBody>,
): Promise<Reply<LeaseReply>> {
  const leaseId = leaseIdOf(params);
  const { expiresIn, fence } = body;
  const asked = { developer: caller, leaseId, expiresIn, fence, idempotencyKey };
  const renewed = await requestRenewal(api, asked);
  switch (renewed.kind) {
    case 'done':
      return { status: 200, body: wireLease(renewed.lease) };
    case 'replayed':
      return { status: 200, body: wireLease(renewed.lease), headers: REPLAYED };
    case 'closed':
      throw leaseClosed(renewed.lease);
    case 'fenced':
      throw fenced(renewed.lease);
    case 'not_renewable':
      throw new ApiError(
        'lease_not_renewable',
        'This lease cannot be renewed: it is 24 hours old, it already ends later than you ask, or a window of its budget has ' +
          'started or changed since it was taken. Settle it and take a new one.',
      );
    case 'unknown_lease':
      throw unknownLease();
    case 'key_closed':
      throw refusalError(api, { kind: 'invalid_api_key' });
    case 'key_reused':
      throw keyReused();
    case 'refused':
      throw leaseError(api, renewed.refusal);
    case 'limit_reached':
      throw leaseError(api, renewed);
  }
}

const SETTLEMENTS = { method: 'POST', route: '/v1/leases/:id/settle' } as const;

/** Always 200; each entry's result has a status of its own, and a refused one counts as a refusal. */
export async function postSettlement(
  api: Api,
  { caller, params, body, requestId }: Request<SettlementEnvelope>,
): Promise<Reply<SettlementReply>> {
  const { fence, final = false } = body;
  const asked = await mapInSlices(body.entries, parseEntry);
  const entries = asked.filter((each): each is AskedEntry => !(each instanceof ApiError));
  const leaseId = leaseIdOf(params);
  const settled = await settle(api, caller, { leaseId, fence, isFinal: final, entries });
  const { lease, outcomes } = settled;
  const outcomeOf = new Map(entries.map((entry, n) => [entry, outcomes[n]]));
  const refused = (entry: unknown, error: ApiError) => {
    api.responses.failedMember(caller, requestId, entry, error, SETTLEMENTS);
    const reply = errorBody(error, api.config.baseUrl, requestId);
    return { ...numberOf(entry), status: error.status, ...reply };
  };
  const results = await mapInSlices(asked, (entry, n): SettlementMember => {
    if (entry instanceof ApiError) return refused(body.entries[n], entry);
    const { sequence, tool } = entry;
    const outcome = outcomeOf.get(entry);
    if (!outcome) throw new Error(`entry ${n} was not decided`);
    if (!('chargeId' in outcome)) return refused(entry, entryError(outcome, lease));
    const { chargeId: id, amountMicros, receiptKey } = outcome;
    const { consumerId, developerId } = lease;
    const charge = { id, consumerId, developerId, tool, amountMicros, cardVersion: 0, receiptKey };
    const payload = receiptPayload({ ...charge, isTest: isTest(caller) });
    return {
      sequence,
      status: 201,
      ...(outcome.kind === 'replayed' && { replayed: true }),
      id: payload.id,
      receipt: api.receipts.signPayload(receiptKey, payload),
      tool,
      amount: dollarsOf(amountMicros),
      createdAt: payload.createdAt,
    };
  });
  return { status: 200, body: { results, lease: wireLease(lease) } };
}

type AskedEntry = SettleRequest['entries'][number];

const settlementEntry = bodyValidator(SettlementEntry);

/** A malformed entry fails on its own: its error is returned. */
function parseEntry(asked: unknown): AskedEntry | ApiError {
  try {
    const { sequence, tool, amount, metadata } = settlementEntry(asked);
    return { sequence, tool, amountMicros: amountOf('amount', amount, CHARGEABLE), metadata };
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** Says which entry a result is about, if its number can be read. */
function numberOf(entry: unknown): { readonly sequence?: number } {
  if (typeof entry !== 'object' || entry === null || !('sequence' in entry)) return {};
  const { sequence } = entry;
  return isSequence(sequence) ? { sequence } : {};
}

/** 200 with the lease, even if it was already released or had nothing left. */
export async function postLeaseRelease(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<LeaseReply>> {
  const asked = { leaseId: leaseIdOf(params), fence: undefined, isFinal: true, entries: [] };
  const { lease } = await settle(api, caller, asked);
  if (lease.status === 'expired') throw leaseClosed(lease);
  return { status: 200, body: wireLease(lease) };
}

export async function getLeases(
  api: Api,
  { caller, query }: Request<undefined, PageQuery>,
): Promise<Reply<LeasesReply>> {
  const { rows, ...marks } = await listPage(query, 'lease', (page) =>
    listLeases(api.database, ownerOf(caller), page),
  );
  return { status: 200, body: { leases: rows.map(wireLease), ...marks } };
}

export async function getLease(api: Api, { caller, params }: Request): Promise<Reply<LeaseReply>> {
  const lease = await findLease(api.database, ownerOf(caller), leaseIdOf(params));
  if (!lease) throw unknownLease();
  return { status: 200, body: wireLease(lease) };
}

async function settle(api: Api, developer: KeyOwner, asked: Omit<SettleRequest, 'developer'>) {
  const settled = await requestSettlement(api, { developer, ...asked });
  if (settled.kind === 'unknown_lease') throw unknownLease();
  if (settled.kind === 'fenced') throw fenced(settled.lease);
  // "Closed" says that a call was not charged. Its charge may be archived already, a month before the lease is.
  const hasClosed = settled.outcomes.some(({ kind }) => kind === 'closed');
  if (hasClosed && (await mayBeArchived(api, asked.leaseId))) throw unknownLease();
  return settled;
}

function entryError(
  outcome: Exclude<SettledOutcome, { kind: 'done' | 'replayed' }>,
  lease: Lease,
): ApiError {
  switch (outcome.kind) {
    case 'exceeds_lease':
      return new ApiError(
        'exceeds_lease',
        `Only ${formatDollars(outcome.limitMicros)} of the lease is left.`,
        { param: 'amount', facts: { remaining: dollarsOf(outcome.limitMicros) } },
      );
    case 'above_price':
      return new ApiError(
        'invalid_amount',
        `The lease allows ${formatDollars(outcome.limitMicros)} for a call to this tool.`,
        { param: 'amount' },
      );
    case 'unknown_tool':
      return new ApiError('tool_not_allowed', 'The lease does not include this tool.', {
        param: 'tool',
      });
    case 'closed':
      return leaseClosed(lease);
    case 'key_reused':
      return new ApiError(
        'idempotency_key_reused',
        'This number was sent with another tool, amount or metadata.',
        { param: 'sequence' },
      );
  }
}

/** The message for a charge asks for an amount. A lease has an amount: it needs the price of the tool. */
const WITHOUT_PRICE = {
  unknown_tool:
    'The tool is not registered: take the lease with a price for it, such as {"name": "...", "price": "0.02"}, or register it ' +
    '(POST /v1/tools). Leases and charges can use at most 1,000 unregistered names.',
  tool_archived:
    'The tool is archived, so its registered price no longer applies: take a lease with a price for it, or unarchive it ' +
    '(PATCH /v1/tools/:id).',
  amount_required:
    'The tool is registered without a price: take the lease with a price for it, or set one (PATCH /v1/tools/:id).',
} as const;

function leaseError(api: Api, refusal: LeaseRefusal): ApiError {
  switch (refusal.kind) {
    case 'not_spendable':
      return new ApiError(
        'lease_not_allowed',
        'Only a spend key can be leased, and only if its budget has allowLeases.',
      );
    case 'unknown_tool':
    case 'tool_archived':
    case 'amount_required': {
      const { code } = refusalError(api, { kind: refusal.kind });
      return new ApiError(code, WITHOUT_PRICE[refusal.kind], { param: `tools.${refusal.index}` });
    }
    case 'invalid_api_key':
    case 'mode_mismatch':
    case 'limit_reached':
    case 'lease_not_allowed':
    case 'tool_not_allowed':
    case 'developer_not_allowed':
    case 'approval_required':
      return refusalError(api, refusal);
  }
}

function refuseTwice(tools: readonly string[]): void {
  if (new Set(tools).size === tools.length) return;
  const index = tools.findIndex((name, n) => tools.indexOf(name) < n);
  throw invalidField(`tools.${index}`, `tools: ${tools[index]} appears twice.`);
}

function leaseClosed({ status }: Lease): ApiError {
  return new ApiError(
    'lease_closed',
    `The lease is closed: its status is ${status}. Take a new lease.`,
    {
      facts: { status },
    },
  );
}

function fenced({ fence }: Lease): ApiError {
  return new ApiError(
    'lease_fenced',
    `The lease has since been renewed; its fence is now ${fence}.`,
    { facts: { fence } },
  );
}

function unknownLease(): ApiError {
  return new ApiError('lease_not_found', 'There is no such lease.');
}

function leaseIdOf(params: Request['params']): string {
  const id = idIn('lease', params);
  if (id === undefined) throw unknownLease();
  return id;
}

function ownerOf(caller: KeyOwner): HoldOwner {
  return caller.kind === 'developer'
    ? { ...caller, kind: 'developer' }
    : { ...caller, kind: 'consumer' };
}

function wireLease(lease: Lease): LeaseReply {
  return {
    id: wireId('lease', lease.id),
    status: lease.status,
    amount: dollarsOf(lease.amountMicros),
    settled: dollarsOf(lease.settledMicros),
    released: dollarsOf(lease.releasedMicros),
    remaining: dollarsOf(lease.remainingMicros),
    expiresAt: lease.expiresAt,
    expiresIn: lease.expiresInMs / 1_000,
    fence: lease.fence,
    tools: lease.tools.map(({ name, priceMicros }) => ({ name, price: dollarsOf(priceMicros) })),
    createdAt: lease.placedAt,
    consumerId: wireId('consumer', lease.consumerId),
    developerId: wireId('developer', lease.developerId),
  };
}
