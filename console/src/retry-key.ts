/**
 * The idempotency keys of forms and buttons. A key stays the same until the outcome of its request is known: the same
 * request again takes effect once, and shows the secret that the first one made; one with other values is refused if
 * the first one arrived.
 */
import { notifications } from '@mantine/notifications';
import { ApiFailure, newIdempotencyKey, write, type WriteOptions } from './api.ts';

/** By what is asked for. They outlive the form, because somebody may leave it and try again in a new one. */
const keys = new Map<string, string>();

/** `what`: the path, or another name for requests that must not both take effect. */
export async function sendOnce<T>(
  what: string,
  send: (idempotencyKey: string) => Promise<T>,
): Promise<T> {
  const idempotencyKey = keys.get(what) ?? newIdempotencyKey();
  keys.set(what, idempotencyKey);
  try {
    const answer = await send(idempotencyKey);
    keys.delete(what);
    return answer;
  } catch (error) {
    if (isUsedUp(error)) keys.delete(what);
    throw error;
  }
}

/**
 * What a form says if an earlier request has done what this one asks for: somebody who means to do the same once more
 * would believe that it has happened twice. That request's key has ended, so the next one takes effect.
 */
export const EARLIER = 'Your earlier request had arrived, so nothing was done a second time.';

export function writeOnce<T>(
  path: string,
  body: object = {},
  options: Pick<WriteOptions, 'apiKey'> = {},
): Promise<T> {
  return sendOnce(path, (idempotencyKey) =>
    write<T>(path, body, { ...options, idempotencyKey, onReplay: sayEarlier }),
  );
}

function sayEarlier(): void {
  notifications.show({ message: EARLIER, autoClose: false });
}

/** The second: a budget that the first request made, and that was closed before the form was sent again. */
const USED_UP = new Set(['idempotency_key_reused', 'budget_closed']);

/**
 * Whether the key is used up: it belongs to a top-up that failed, or to a request with other values. Any other
 * refusal leaves open whether an earlier request, whose response was lost, took effect.
 */
function isUsedUp(error: unknown): boolean {
  return error instanceof ApiFailure && (error.topUpId !== undefined || USED_UP.has(error.code));
}
