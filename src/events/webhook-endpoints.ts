/**
 * Making and changing webhook endpoints, the same for the API and the command line: the URL is checked here
 * as text, and its addresses whenever something is sent.
 */
import { webhookProblem } from '../egress/endpoints.ts';
import type { Database } from '../store/database.ts';
import {
  changeWebhookEndpoint,
  makeWebhookEndpoint,
  rollWebhookSecret,
  type EndpointChanges,
  type EndpointSettings,
  type WebhookEndpoint,
  type WhichEndpoint,
} from '../store/events/webhook-endpoints.ts';
import type { RepeatedRequest } from '../store/repeated-request.ts';
import type { WebhookSigner } from './signing.ts';

interface Rules {
  /** Allows loopback and private networks: for development. */
  readonly allowPrivate: boolean;
}

/** The problem is worded to follow "url". */
export interface UrlRefused {
  readonly kind: 'url_refused';
  readonly problem: string;
}

interface Done {
  readonly kind: 'done';
  readonly endpoint: WebhookEndpoint;
  /** The current one, shown once, and again to a retry. */
  readonly secret: string;
  /** An earlier request with the same idempotency key did it. */
  readonly isReplayed: boolean;
}

/**
 * `key_reused`: the idempotency key belongs to another request. `secret_lost`: it belongs to this one, whose secret was
 * derived from a master secret that is not in the settings any more.
 */
type NotRepeated = { readonly kind: 'key_reused' } | { readonly kind: 'secret_lost' };

export async function addEndpoint(
  database: Database,
  accountId: string,
  settings: EndpointSettings,
  { signer, allowPrivate }: Rules & { readonly signer: WebhookSigner },
  retry?: RepeatedRequest,
): Promise<UrlRefused | NotRepeated | { readonly kind: 'too_many' } | Done> {
  const problem = webhookProblem(settings.url, { allowPrivate });
  if (problem) return { kind: 'url_refused', problem };
  const { activeMaster } = signer;
  const made = await makeWebhookEndpoint(database, accountId, activeMaster, settings, retry);
  return 'endpoint' in made ? done(signer, made) : made;
}

export async function changeEndpoint(
  database: Database,
  which: WhichEndpoint,
  changes: EndpointChanges,
  { allowPrivate }: Rules,
): Promise<
  | UrlRefused
  | { readonly kind: 'unknown' }
  | { readonly kind: 'changed'; readonly endpoint: WebhookEndpoint }
> {
  const problem =
    changes.url === undefined ? undefined : webhookProblem(changes.url, { allowPrivate });
  if (problem) return { kind: 'url_refused', problem };
  const endpoint = await changeWebhookEndpoint(database, which, changes);
  return endpoint ? { kind: 'changed', endpoint } : { kind: 'unknown' };
}

export async function rollSecret(
  database: Database,
  which: WhichEndpoint,
  overlapSeconds: number,
  signer: WebhookSigner,
  retry?: RepeatedRequest,
): Promise<NotRepeated | { readonly kind: 'unknown' } | Done> {
  const { activeMaster } = signer;
  const rolled = await rollWebhookSecret(database, which, activeMaster, overlapSeconds, retry);
  return 'endpoint' in rolled ? done(signer, rolled) : rolled;
}

function done(
  signer: WebhookSigner,
  { kind, endpoint }: { readonly kind: string; readonly endpoint: WebhookEndpoint },
): Done | NotRepeated {
  const { id, secret, secretMaster: master } = endpoint;
  if (!signer.has({ secret, master })) return { kind: 'secret_lost' };
  return {
    kind: 'done',
    isReplayed: kind === 'known',
    endpoint,
    secret: signer.secretOf(id, { secret, master }),
  };
}
