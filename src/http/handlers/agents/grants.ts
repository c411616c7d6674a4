/** Grants: who may invoke which agent, and how often (legacy, specification section 4.4). */
import { DAY_MS } from '../../../domain/durations.ts';
import { ApiError } from '../../../domain/errors.ts';
import { ACTIVE_GRANTS_MAX } from '../../../domain/grant.ts';
import { wireId } from '../../../domain/ids.ts';
import { parseTime } from '../../../domain/iso-time.ts';
import type { GrantBody, GrantReply } from '../../../schemas/grants.ts';
import { findAgent } from '../../../store/agents/agents.ts';
import {
  createGrant,
  findGrantFor,
  findKnownGrant,
  revokeGrant,
  type CreateGrantResult,
  type Grant,
  type NewGrant,
} from '../../../store/agents/grants.ts';
import type { Api } from '../../services.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';
import { idIn, noSuch } from '../../look-ups.ts';
import { keyReused, requestHashOf } from '../../repeated-requests.ts';
import { REPLAYED } from '../../respond.ts';

const DAYS_MAX = 30;
/** One of ten thousand may end at any time. */
export const RETRY_SECONDS = 60;
const EXPIRY = `must be a future ISO 8601 time, at most ${DAYS_MAX} days ahead.`;

export async function postGrant(
  api: Api,
  { caller, body, idempotencyKey }: Request<GrantBody>,
): Promise<Reply<GrantReply, 201>> {
  const request = grantOf(body, caller.accountId, idempotencyKey);
  // First: a retry with the same key gets the same grant, even if `expiresAt` has passed by now.
  const { database } = api.invocations;
  const known = await findKnownGrant(database, request);
  const result = known ?? (await makeGrant(api, request));
  if (result.kind === 'key_reused') {
    throw keyReused('This Idempotency-Key belongs to a grant with other terms.');
  }
  if (result.kind === 'too_many') {
    throw new ApiError(
      'rate_limited',
      `An account can have at most ${ACTIVE_GRANTS_MAX} active grants. Revoke one, or wait until one ends.`,
      { retryAfterSeconds: RETRY_SECONDS },
    );
  }
  return {
    status: 201,
    body: wireGrant(result.grant),
    ...(result.kind === 'known' && { headers: REPLAYED }),
  };
}

/** Performs the checks that depend on the body alone. */
function grantOf(body: GrantBody, accountId: string, idempotencyKey: string | undefined): NewGrant {
  const { callerId, targetAgentId, type } = body;
  const expiresAt = expiryOf(body);
  const maxUses = maxUsesOf(body);
  const asked = [callerId, targetAgentId, type, expiresAt ?? null, maxUses];
  const requestHash = requestHashOf(asked);
  return {
    accountId,
    callerId,
    targetAgentId,
    type,
    expiresAt,
    maxUses,
    idempotencyKey,
    requestHash,
  };
}

async function makeGrant(api: Api, request: NewGrant): Promise<CreateGrantResult> {
  const { expiresAt, targetAgentId } = request;
  const { database } = api.invocations;
  const inMs = expiresAt === undefined ? DAY_MS : Date.parse(expiresAt) - api.clock.nowMs();
  if (inMs <= 0 || inMs > DAYS_MAX * DAY_MS) throw invalid('expiresAt', EXPIRY);
  if (!(await findAgent(database, targetAgentId))) throw noSuch('agent', 'targetAgentId');
  return createGrant(database, request);
}

export async function getGrant(api: Api, { caller, params }: Request): Promise<Reply<GrantReply>> {
  const id = idIn('grant', params);
  const grant = id && (await findGrantFor(api.database, caller.accountId, id));
  if (!grant) throw noSuch('grant');
  return { status: 200, body: wireGrant(grant) };
}

/**
 * Only the account that created a grant can revoke it. Revoking it again changes nothing. Invocations in progress
 * continue.
 */
export async function postGrantRevocation(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<GrantReply>> {
  const id = idIn('grant', params);
  const result = id && (await revokeGrant(api.invocations.database, caller.accountId, id));
  if (!result) throw noSuch('grant');
  if (result.kind === 'ended') {
    const { status } = result.grant;
    throw new ApiError('grant_not_active', `The grant is already ${status}; it was not revoked.`, {
      facts: { status },
    });
  }
  return { status: 200, body: wireGrant(result.grant) };
}

/** The expiry in UTC. */
function expiryOf({ type, expiresAt }: GrantBody): string | undefined {
  if (expiresAt === undefined) {
    if (type === 'session') throw invalid('expiresAt', 'is required for a session grant.');
    return undefined;
  }
  const timeMs = parseTime(expiresAt);
  if (Number.isNaN(timeMs)) throw invalid('expiresAt', EXPIRY);
  return new Date(timeMs).toISOString();
}

function maxUsesOf({ type, maxUses }: GrantBody): number | null {
  if (type === 'limited' && maxUses === undefined) {
    throw invalid('maxUses', 'is required for a limited grant.');
  }
  if (type !== 'limited' && maxUses !== undefined) {
    throw invalid('maxUses', 'applies to limited grants only.');
  }
  return maxUses ?? (type === 'one_time' ? 1 : null);
}

function invalid(param: string, problem: string): ApiError {
  return invalidField(param, `${param} ${problem}`);
}

function wireGrant(grant: Grant): GrantReply {
  return {
    id: wireId('grant', grant.id),
    callerId: grant.callerId,
    targetAgentId: grant.targetAgentId,
    type: grant.type,
    status: grant.status,
    createdAt: grant.createdAt,
    expiresAt: grant.expiresAt,
    uses: grant.uses,
    ...(grant.type === 'limited' && grant.maxUses !== null && { maxUses: grant.maxUses }),
  };
}
