/** An account's webhook endpoints. The URL is checked here as text, and its addresses whenever something is sent. */
import { ApiError } from '../../../domain/errors.ts';
import { uuidOf, wireId } from '../../../domain/ids.ts';
import { SECRET_OVERLAP_SECONDS, WEBHOOK_ENDPOINTS_MAX } from '../../../domain/webhook-endpoint.ts';
import { webhookProblem } from '../../../egress/post.ts';
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
  changeWebhookEndpoint,
  deleteWebhookEndpoint,
  findWebhookEndpoint,
  listWebhookEndpoints,
  makeWebhookEndpoint,
  rollWebhookSecret,
  type WebhookEndpoint,
  type WhichEndpoint,
} from '../../../store/events/webhook-endpoints.ts';
import type { Reply, Request } from '../../endpoint.ts';
import type { Api } from '../../services.ts';

/** A secret must be in no cache, the browser's own among them. */
const NO_STORE = { 'Cache-Control': 'no-store' } as const;

export async function postEndpoint(
  api: Api,
  { caller, body }: Request<WebhookEndpointBody>,
): Promise<Reply<NewWebhookEndpointReply, 201>> {
  const { types = null, description = '' } = body;
  const url = checkedUrl(api, body.url);
  const { activeMaster } = api.webhookSigner;
  const settings = { url, types, description };
  const made = await makeWebhookEndpoint(api.database, caller.accountId, activeMaster, settings);
  if (!made) {
    throw new ApiError(
      'invalid_request',
      `An account has at most ${WEBHOOK_ENDPOINTS_MAX} webhook endpoints. Delete one.`,
    );
  }
  return {
    status: 201,
    body: { ...wireEndpoint(made), secret: secretOf(api, made) },
    headers: NO_STORE,
  };
}

/** Oldest first. */
export async function getEndpoints(
  api: Api,
  { caller }: Request,
): Promise<Reply<WebhookEndpointsReply>> {
  const found = await listWebhookEndpoints(api.database, caller.accountId);
  return { status: 200, body: { webhookEndpoints: found.map(wireEndpoint) } };
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
  const changed = await changeWebhookEndpoint(api.database, whichOf({ caller, params }), {
    url: body.url === undefined ? undefined : checkedUrl(api, body.url),
    types: body.types,
    description: body.description,
    isEnabled: body.enabled,
  });
  return { status: 200, body: wireEndpoint(known(changed)) };
}

export async function deleteEndpoint(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<DeletedWebhookEndpointReply>> {
  const which = whichOf({ caller, params });
  if (!(await deleteWebhookEndpoint(api.database, which))) throw noSuchEndpoint();
  return { status: 200, body: { id: wireId('webhookEndpoint', which.id), deleted: true } };
}

export async function postSecretRoll(
  api: Api,
  { caller, params, body }: Request<RollSecretBody>,
): Promise<Reply<RolledSecretReply>> {
  const rolled = known(
    await rollWebhookSecret(
      api.database,
      whichOf({ caller, params }),
      api.webhookSigner.activeMaster,
      body.overlapSeconds ?? SECRET_OVERLAP_SECONDS,
    ),
  );
  return {
    status: 200,
    body: {
      id: wireId('webhookEndpoint', rolled.id),
      secret: secretOf(api, rolled),
      previousSecretExpiresAt: rolled.previousSecretUntil,
    },
    headers: NO_STORE,
  };
}

/** Of the caller's account. */
export function whichOf({ caller, params }: Pick<Request, 'caller' | 'params'>): WhichEndpoint {
  const id = uuidOf('webhookEndpoint', params['id'] ?? '');
  if (id === undefined) throw noSuchEndpoint();
  return { id, accountId: caller.accountId };
}

export function known(found: WebhookEndpoint | null): WebhookEndpoint {
  if (!found) throw noSuchEndpoint();
  return found;
}

function noSuchEndpoint(): ApiError {
  return new ApiError('not_found', 'There is no such webhook endpoint.');
}

function checkedUrl({ config }: Api, url: string): string {
  const problem = webhookProblem(url, { allowPrivate: config.allowPrivateEndpoints });
  if (problem) throw new ApiError('invalid_request', `url ${problem}`, { param: 'url' });
  return url;
}

function secretOf(api: Api, { id, secret, secretMaster }: WebhookEndpoint): string {
  return api.webhookSigner.secretOf(id, { secret, master: secretMaster });
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
