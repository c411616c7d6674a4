/**
 * Sends what is due for one endpoint. It may run twice at once: receivers get the same `webhook-id` and body,
 * and only one of the two attempts is recorded. So each event arrives at least once, until it is given up.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { HOUR_MS } from '../domain/durations.ts';
import { wireId } from '../domain/ids.ts';
import {
  ANSWER_CHARACTERS_MAX,
  ANSWER_TIMEOUT_MS,
  webhookRetryMs,
} from '../domain/webhook-delivery.ts';
import { openPoster, type Posted, type Poster } from '../egress/post.ts';
import type { SharedPlaces } from '../domain/shared-places.ts';
import type { Database } from '../store/database.ts';
import {
  disableIfStillFailing,
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
  /** The places of this worker for endpoints that are sent to. */
  readonly places: SharedPlaces;
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

interface Running {
  readonly beganMs: number;
  readonly isRetry: boolean;
  /** Does not reject. */
  readonly ended: Promise<void>;
}

/** How many are sent at once to one endpoint. */
const LANES = 8;
/**
 * How many of these repeat attempts that failed. The others are kept for first attempts: a receiver that refuses some
 * events, or does not answer them, gets the new ones in time.
 */
const RETRY_LANES = 6;
/**
 * After this it repeats nothing, makes first attempts only while earlier ones have no answer, and then returns, so that
 * the workflow does not wait long and a worker can stop.
 */
const SENDING_MS_MAX = 5_000;
/** While attempts have no answer and lanes are free, new events are looked for this often. */
const LOOK_MS = 500;
const RETRY_AFTER_MS_MAX = HOUR_MS;
/** How often an endpoint without a secret checks again. A roll of its secret, or a new worker, may bring one. */
const SECRET_MISSING_MS = 60_000;
/** Twice what an endpoint that answers takes. One that hangs takes at least `ANSWER_TIMEOUT_MS`. */
const HUNG_AFTER_MS = 10_000;
/** When an endpoint without a place asks again. */
const NO_PLACE_MS = 30_000;

/**
 * Begins no attempt after `signal` has aborted. Without a place for the account, sends nothing, and the events stay
 * due.
 */
export async function sendDue(
  deps: SendDeps,
  endpointId: string,
  signal?: AbortSignal,
): Promise<Sent> {
  const { database, allowPrivate, places } = deps;
  const poster = openPoster({
    allowPrivate,
    timeoutMs: ANSWER_TIMEOUT_MS,
    charactersMax: ANSWER_CHARACTERS_MAX,
  });
  try {
    for (;;) {
      const endpoint = await findWebhookEndpoint(database, { id: endpointId });
      if (endpoint?.status !== 'active') {
        await dropUnsendable(database, endpointId);
        if (endpoint) void deps.mailOwners();
        return stateOf(endpoint, null);
      }
      if (secretsOf(deps, endpoint).length === 0) return await waitForSecret(deps, endpoint);
      const { accountId } = endpoint;
      if (!places.take(accountId)) return stateOf(endpoint, NO_PLACE_MS);
      const takenAtMs = performance.now();
      try {
        await sendInLanes(deps, poster, { endpointId, signal });
      } finally {
        places.giveBack(accountId, { hung: performance.now() - takenAtMs > HUNG_AFTER_MS });
      }
      const seen = await findWebhookEndpoint(database, { id: endpointId });
      if (seen?.status === 'disabled') continue;
      return stateOf(seen, await nextDeliveryInMs(database, endpointId));
    }
  } finally {
    await poster.close();
  }
}

/** Each lane takes the next event as soon as it is free, even if others wait for an answer. Returns when all are free. */
async function sendInLanes(
  deps: SendDeps,
  poster: Poster,
  { endpointId, signal }: { readonly endpointId: string; readonly signal: AbortSignal | undefined },
): Promise<void> {
  const { database } = deps;
  const untilMs = performance.now() + SENDING_MS_MAX;
  /** By the ids of their events, the oldest first. */
  const running = new Map<string, Running>();
  /** The addresses that have accepted an event since deliveries were last hastened. */
  const accepting = new Set<string>();
  const errors: unknown[] = [];
  let isLate = false;

  const run = async (to: Receiver, delivery: DueDelivery) => {
    try {
      const end = await attempt(deps, poster, to, delivery);
      if (end === 'delivered') accepting.add(to.endpoint.url);
      if (end === 'late') isLate = true;
    } catch (error) {
      errors.push(error);
    } finally {
      running.delete(delivery.id);
    }
  };

  const startDue = async () => {
    const isInTime = performance.now() < untilMs;
    const [oldest] = running.values();
    const isEarlierRunning = oldest !== undefined && oldest.beganMs < untilMs;
    if (isLate || signal?.aborted || running.size === LANES) return;
    if (!isInTime && !isEarlierRunning) return;
    // Each time: it may have been changed or disabled, or its secret rolled.
    const endpoint = await findWebhookEndpoint(database, { id: endpointId });
    if (endpoint?.status !== 'active') return;
    const secrets = secretsOf(deps, endpoint);
    if (secrets.length === 0) return;
    const retries = [...running.values()].filter(({ isRetry }) => isRetry).length;
    const due = await listDueDeliveries(database, endpointId, {
      limit: LANES - running.size,
      retriesMax: isInTime ? RETRY_LANES - retries : 0,
      except: [...running.keys()],
    });
    for (const delivery of due) {
      running.set(delivery.id, {
        beganMs: performance.now(),
        isRetry: delivery.attempts > 0,
        ended: run({ endpoint, secrets }, delivery),
      });
    }
  };

  // After every success, not only the first after a failure: a worker may have been killed just before this.
  const hasten = async () => {
    let isAny = false;
    for (const url of accepting) {
      accepting.delete(url);
      if (await hastenDeliveries(database, { endpointId, url })) isAny = true;
    }
    return isAny;
  };

  try {
    for (;;) {
      const [error] = errors;
      if (error !== undefined) throw error;
      await startDue();
      // While no lane is free, enough is due.
      if (running.size < LANES && (await hasten())) continue;
      if (running.size === 0 && accepting.size === 0 && errors.length === 0) break;
      if (running.size > 0) await firstOf(running);
    }
  } finally {
    // Otherwise the end of the connections would be recorded as a failure of the receiver.
    await Promise.all([...running.values()].map(({ ended }) => ended));
  }
  // After all of them: one that it accepted may be recorded after one that it refused.
  if (isLate) await disableIfStillFailing(database, endpointId);
}

async function firstOf(running: ReadonlyMap<string, Running>): Promise<void> {
  const ends = [...running.values()].map(({ ended }) => ended);
  await Promise.race([...ends, delay(LOOK_MS, undefined, { ref: false })]);
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

/** Without those that a missing master secret made. The newest first. */
function secretsOf({ signer }: SendDeps, endpoint: WebhookEndpoint): SecretNumbers[] {
  const { secret, secretMaster, previousSecret, previousSecretMaster } = endpoint;
  const newest = { secret, master: secretMaster };
  const secrets =
    previousSecret === null || previousSecretMaster === null
      ? [newest]
      : [newest, { secret: previousSecret, master: previousSecretMaster }];
  return secrets.filter((numbers) => signer.has(numbers));
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
