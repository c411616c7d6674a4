/**
 * Sends what is due for one endpoint. It may run twice at once: receivers get the same `webhook-id` and body,
 * and only one of the two attempts is recorded. So each event arrives at least once, until it is given up.
 */
import { HOUR_MS } from '../domain/durations.ts';
import { wireId } from '../domain/ids.ts';
import {
  ANSWER_CHARACTERS_MAX,
  ANSWER_TIMEOUT_MS,
  webhookRetryMs,
} from '../domain/webhook-delivery.ts';
import { openPoster, type Posted, type Poster } from '../egress/post.ts';
import type { Database } from '../store/database.ts';
import {
  disableIfLate,
  hastenDeliveries,
  listDueDeliveries,
  nextDeliveryInMs,
  recordDelivered,
  recordFailed,
  type Attempt,
  type DueDelivery,
} from '../store/events/deliveries.ts';
import {
  disableWebhookEndpoint,
  dropUnsendable,
  findWebhookEndpoint,
  type WebhookEndpoint,
} from '../store/events/webhook-endpoints.ts';
import { payloadOf } from './payload.ts';
import type { SecretNumbers, WebhookSigner } from './signing.ts';

export interface SendDeps {
  readonly database: Database;
  readonly signer: WebhookSigner;
  /** Whether endpoints may have loopback and private addresses. */
  readonly allowPrivate: boolean;
  /** The pause after the first failure. */
  readonly retryMs: number;
  /** Called with the number of a master secret that signs for an endpoint and is not in the settings. */
  readonly onMissingMaster: (endpointId: string, master: number) => void;
  /** Sends the mails about disabled endpoints. Not awaited: a mail server may be slow. Does not reject. */
  readonly mailOwners: () => Promise<void>;
}

export interface Sent {
  /** Null: it was deleted. */
  readonly status: WebhookEndpoint['status'] | null;
  readonly failingSince: string | null;
  /** How long until there is more to send; 0: there is more now. Null: nothing waits. */
  readonly nextInMs: number | null;
}

/** An endpoint with the secrets that sign for it, at least one. */
interface Receiver {
  readonly endpoint: WebhookEndpoint;
  readonly secrets: readonly SecretNumbers[];
}

/** How many are sent at once to one endpoint. */
const LANES = 8;
/** After this it returns, so that a change of the endpoint and a stop of the worker are noticed. */
const SENDING_MS_MAX = 5_000;
const RETRY_AFTER_MS_MAX = HOUR_MS;
/** How often an endpoint without a secret checks again. A roll of its secret, or a new worker, may bring one. */
const SECRET_MISSING_MS = 60_000;

export async function sendDue(deps: SendDeps, endpointId: string): Promise<Sent> {
  const { database, allowPrivate } = deps;
  const poster = openPoster({
    allowPrivate,
    timeoutMs: ANSWER_TIMEOUT_MS,
    charactersMax: ANSWER_CHARACTERS_MAX,
  });
  const untilMs = performance.now() + SENDING_MS_MAX;
  try {
    for (;;) {
      const endpoint = await findWebhookEndpoint(database, { id: endpointId });
      if (endpoint?.status !== 'active') {
        await dropUnsendable(database, endpointId);
        if (endpoint) void deps.mailOwners();
        return stateOf(endpoint, null);
      }
      const secrets = secretsOf(endpoint).filter((numbers) => deps.signer.has(numbers));
      if (secrets.length === 0) return await waitForSecret(deps, endpoint);
      const due = await listDueDeliveries(database, endpointId, LANES);
      const attempts = due.map((delivery) =>
        attempt(deps, poster, { endpoint, secrets }, delivery),
      );
      const ends = await Promise.all(attempts);
      // After every success, not only the first after a failure: a worker may have been killed just before this.
      const isHastened =
        ends.includes('delivered') &&
        (await hastenDeliveries(database, { endpointId, url: endpoint.url }));
      // After all of them: one that it accepted may be recorded after one that it refused.
      if (ends.includes('late')) await disableIfLate(database, endpointId);
      if ((isHastened || due.length === LANES) && performance.now() < untilMs) continue;
      const seen = await findWebhookEndpoint(database, { id: endpointId });
      if (seen?.status === 'disabled') continue;
      return stateOf(seen, await nextDeliveryInMs(database, endpointId));
    }
  } finally {
    await poster.close();
  }
}

/** A missing secret is the operator's fault, so it is no failed attempt of the receiver, and the events stay due. */
async function waitForSecret(deps: SendDeps, endpoint: WebhookEndpoint): Promise<Sent> {
  const nextInMs = await nextDeliveryInMs(deps.database, endpoint.id);
  if (nextInMs === null) return stateOf(endpoint, null);
  deps.onMissingMaster(endpoint.id, endpoint.secretMaster);
  return stateOf(endpoint, Math.max(nextInMs, SECRET_MISSING_MS));
}

function stateOf(endpoint: WebhookEndpoint | null, nextInMs: number | null): Sent {
  return {
    status: endpoint?.status ?? null,
    failingSince: endpoint?.failingSince ?? null,
    nextInMs,
  };
}

/** `late`: attempts have failed for so long that the endpoint should be disabled. */
async function attempt(
  deps: SendDeps,
  poster: Poster,
  to: Receiver,
  delivery: DueDelivery,
): Promise<'delivered' | 'failed' | 'late'> {
  const { database } = deps;
  const { endpoint } = to;
  const beganMs = performance.now();
  const posted = await poster.post(endpoint.url, signedMessage(deps.signer, to, delivery));
  const made: Attempt = {
    endpointId: endpoint.id,
    url: endpoint.url,
    eventId: delivery.id,
    attempts: delivery.attempts,
    dueAt: delivery.dueAt,
    durationMs: Math.round(performance.now() - beganMs),
    responseStatus: posted.kind === 'answered' ? posted.status : null,
    responseBody: posted.kind === 'answered' ? posted.beginning : null,
    error: posted.kind === 'failed' ? posted.reason : null,
  };
  if (isReceived(posted)) {
    await recordDelivered(database, made);
    return 'delivered';
  }
  const isLate = await recordFailed(database, made, retryMsOf(deps, posted, made.attempts + 1));
  if (made.responseStatus === 410) await disableGone(deps, endpoint);
  return isLate ? 'late' : 'failed';
}

/** The same bytes at every attempt; only the time of the attempt and the signature differ. */
function signedMessage(
  signer: WebhookSigner,
  { endpoint, secrets }: Receiver,
  delivery: DueDelivery,
) {
  const id = wireId('event', delivery.id);
  const timestamp = delivery.signedAt;
  const body = JSON.stringify(payloadOf(delivery));
  return {
    body,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'Farebox (webhooks)',
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signer.sign(endpoint.id, secrets, { id, timestamp, body }),
    },
  };
}

/** The newest first. */
function secretsOf(endpoint: WebhookEndpoint): SecretNumbers[] {
  const { secret, secretMaster, previousSecret, previousSecretMaster } = endpoint;
  const newest = { secret, master: secretMaster };
  return previousSecret === null || previousSecretMaster === null
    ? [newest]
    : [newest, { secret: previousSecret, master: previousSecretMaster }];
}

function isReceived(posted: Posted): boolean {
  return posted.kind === 'answered' && posted.status >= 200 && posted.status < 300;
}

function retryMsOf({ retryMs }: SendDeps, posted: Posted, attempts: number): number {
  const askedMs = posted.kind === 'answered' ? (posted.retryAfterMs ?? 0) : 0;
  const ownMs = webhookRetryMs(attempts, retryMs, Math.random());
  return Math.max(ownMs, Math.min(askedMs, RETRY_AFTER_MS_MAX));
}

async function disableGone({ database }: SendDeps, { id, url }: WebhookEndpoint): Promise<void> {
  // Not if the owner has given it another address meanwhile.
  await database.transaction((tx) => disableWebhookEndpoint(tx, id, 'gone', url));
}
