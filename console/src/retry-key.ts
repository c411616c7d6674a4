/**
 * The idempotency key of a form or button. It stays the same until the request succeeds or asks for something
 * else, so that sending it again after a lost answer takes effect once, and shows the secret that the first
 * time made.
 */
import { useRef } from 'react';
import { newIdempotencyKey, write, type WriteOptions } from './api.ts';

/** Sends with the key of what is asked. */
export function useRetryKey() {
  const last = useRef({ asked: '', idempotencyKey: '' });
  return async <T>(question: unknown, send: (idempotencyKey: string) => Promise<T>): Promise<T> => {
    const asked = JSON.stringify(question);
    if (last.current.asked !== asked) {
      last.current = { asked, idempotencyKey: newIdempotencyKey() };
    }
    const answer = await send(last.current.idempotencyKey);
    last.current = { asked: '', idempotencyKey: '' };
    return answer;
  };
}

export function useRetriedWrite<T>() {
  const once = useRetryKey();
  return (path: string, body: object = {}, options: Pick<WriteOptions, 'apiKey'> = {}) =>
    once([path, body, options], (idempotencyKey) =>
      write<T>(path, body, { ...options, idempotencyKey }),
    );
}
