/**
 * Making and changing webhook endpoints, the same for the API and the command line: the URL is checked here as text, and
 * its addresses whenever something is sent.
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

interface WithSecret {
  readonly endpoint: WebhookEndpoint;
  /** Shown once. */
  readonly secret: string;
}

export async function addEndpoint(
  database: Database,
  accountId: string,
  settings: EndpointSettings,
  { signer, allowPrivate }: Rules & { readonly signer: WebhookSigner },
): Promise<UrlRefused | { readonly kind: 'too_many' } | ({ readonly kind: 'added' } & WithSecret)> {
  const problem = webhookProblem(settings.url, { allowPrivate });
  if (problem) return { kind: 'url_refused', problem };
  const made = await makeWebhookEndpoint(database, accountId, signer.activeMaster, settings);
  return made ? { kind: 'added', ...withSecret(signer, made) } : { kind: 'too_many' };
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

/** Null when there is no such endpoint. */
export async function rollSecret(
  database: Database,
  which: WhichEndpoint,
  overlapSeconds: number,
  signer: WebhookSigner,
): Promise<WithSecret | null> {
  const rolled = await rollWebhookSecret(database, which, signer.activeMaster, overlapSeconds);
  return rolled && withSecret(signer, rolled);
}

function withSecret(signer: WebhookSigner, endpoint: WebhookEndpoint): WithSecret {
  const { id, secret, secretMaster } = endpoint;
  return { endpoint, secret: signer.secretOf(id, { secret, master: secretMaster }) };
}
