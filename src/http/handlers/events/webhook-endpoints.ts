/** An account's webhook endpoints. */
import { ApiError } from '../../../domain/errors.ts';
import { wireId } from '../../../domain/ids.ts';
import { SECRET_OVERLAP_SECONDS, WEBHOOK_ENDPOINTS_MAX } from '../../../domain/webhook-endpoint.ts';
import {
  addEndpoint,
  changeEndpoint,
  rollSecret,
  type UrlRefused,
} from '../../../events/webhook-endpoints.ts';
import type {
  DeletedWebhookEndpointReply,
  NewWebhookEndpointReply,
  RolledSecretReply,
  RollSecretBody,
  WebhookEndpointBody,
  WebhookEndpointChanges,
  WebhookEndpointReply,
  WebhookEndpointsReply,
} from '../../../schemas/webhook-endpoints.ts';
import {
  deleteWebhookEndpoint,
  findWebhookEndpoint,
  listWebhookEndpoints,
  type WebhookEndpoint,
  type WhichEndpoint,
} from '../../../store/events/webhook-endpoints.ts';
import type { PageQuery } from '../../../schemas/shapes.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';
import { idIn, noSuch } from '../../look-ups.ts';
import { NO_STORE, REPLAYED } from '../../respond.ts';
import { listPage } from '../../pagination.ts';
import { cannotShowAgain, keyReused, retryOf } from '../../repeated-requests.ts';
import type { Api } from '../../services.ts';

function shownOnce({ isReplayed }: { readonly isReplayed: boolean }) {
  return { ...NO_STORE, ...(isReplayed && REPLAYED) };
}

export async function postEndpoint(
  api: Api,
  { caller, body, idempotencyKey }: Request<WebhookEndpointBody>,
): Promise<Reply<NewWebhookEndpointReply, 201>> {
  const { url, types = null, description = '' } = body;
  const settings = { url, types, description };
  const retry = retryOf(caller.accountId, idempotencyKey, settings);
  const { accountId } = caller;
  const added = await addEndpoint(api.database, accountId, settings, rulesOf(api), retry);
  if (added.kind === 'url_refused') throw refusedUrl(added);
  if (added.kind === 'key_reused') throw keyReused();
  if (added.kind === 'secret_lost') throw cannotShowAgain('secret');
  if (added.kind === 'too_many') {
    throw new ApiError(
      'invalid_request',
      `An account has at most ${WEBHOOK_ENDPOINTS_MAX} webhook endpoints. Delete one.`,
    );
  }
  return {
    status: 201,
    body: { ...wireEndpoint(added.endpoint), secret: added.secret },
    headers: shownOnce(added),
  };
}

/** Oldest first. */
export async function getEndpoints(
  api: Api,
  { caller, query }: Request<undefined, PageQuery>,
): Promise<Reply<WebhookEndpointsReply>> {
  const { rows, hasMore, nextCursor } = await listPage(
    query,
    'webhookEndpoint',
    ({ limit, beforeId: afterId }) =>
      listWebhookEndpoints(api.database, caller.accountId, { limit, afterId }),
  );
  return { status: 200, body: { webhookEndpoints: rows.map(wireEndpoint), hasMore, nextCursor } };
}

export async function getEndpoint(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<WebhookEndpointReply>> {
  const found = await findWebhookEndpoint(api.database, whichOf({ caller, params }));
  return { status: 200, body: wireEndpoint(known(found)) };
}

export async function patchEndpoint(
  api: Api,
  { caller, params, body }: Request<WebhookEndpointChanges>,
): Promise<Reply<WebhookEndpointReply>> {
  const which = whichOf({ caller, params });
  const { url, types, description, enabled: isEnabled } = body;
  const changes = { url, types, description, isEnabled };
  const changed = await changeEndpoint(api.database, which, changes, rulesOf(api));
  if (changed.kind === 'url_refused') throw refusedUrl(changed);
  if (changed.kind === 'unknown') throw noSuch('webhook endpoint');
  return { status: 200, body: wireEndpoint(changed.endpoint) };
}

export async function deleteEndpoint(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<DeletedWebhookEndpointReply>> {
  const which = whichOf({ caller, params });
  if (!(await deleteWebhookEndpoint(api.database, which))) throw noSuch('webhook endpoint');
  return { status: 200, body: { id: wireId('webhookEndpoint', which.id), deleted: true } };
}

export async function postSecretRoll(
  api: Api,
  { caller, params, body, idempotencyKey }: Request<RollSecretBody>,
): Promise<Reply<RolledSecretReply>> {
  const which = whichOf({ caller, params });
  const { overlapSeconds = SECRET_OVERLAP_SECONDS } = body;
  const retry = retryOf(caller.accountId, idempotencyKey, { rolls: which.id, overlapSeconds });
  const rolled = await rollSecret(api.database, which, overlapSeconds, api.webhookSigner, retry);
  if (rolled.kind === 'unknown') throw noSuch('webhook endpoint');
  if (rolled.kind === 'key_reused') throw keyReused();
  if (rolled.kind === 'secret_lost') throw cannotShowAgain('secret');
  return {
    status: 200,
    body: {
      id: wireId('webhookEndpoint', rolled.endpoint.id),
      secret: rolled.secret,
      previousSecretExpiresAt: rolled.endpoint.previousSecretUntil,
    },
    headers: shownOnce(rolled),
  };
}

/** The endpoint in the path, if it belongs to the caller's account. */
export function whichOf({ caller, params }: Pick<Request, 'caller' | 'params'>): WhichEndpoint {
  const id = idIn('webhookEndpoint', params);
  if (id === undefined) throw noSuch('webhook endpoint');
  return { id, accountId: caller.accountId };
}

export function known(found: WebhookEndpoint | null): WebhookEndpoint {
  if (!found) throw noSuch('webhook endpoint');
  return found;
}

function refusedUrl({ problem }: UrlRefused): ApiError {
  return invalidField('url', `url ${problem}`);
}

function rulesOf({ config, webhookSigner }: Api) {
  return { signer: webhookSigner, allowPrivate: config.allowPrivateEndpoints };
}

function wireEndpoint(endpoint: WebhookEndpoint): WebhookEndpointReply {
  return {
    id: wireId('webhookEndpoint', endpoint.id),
    url: endpoint.url,
    types: endpoint.types as WebhookEndpointReply['types'],
    description: endpoint.description,
    status: endpoint.status,
    disabledReason: endpoint.disabledReason,
    failingSince: endpoint.failingSince,
    previousSecretExpiresAt: endpoint.previousSecretUntil,
    createdAt: endpoint.createdAt,
  };
}
