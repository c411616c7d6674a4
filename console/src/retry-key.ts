/**
 * The idempotency key of a form or button that makes a secret. It stays the same until the request succeeds or asks for
 * something else, so that sending it again after a lost answer shows the secret of the first time.
 */
import { useRef } from 'react';
import { newIdempotencyKey, write } from './api.ts';

export function useRetriedWrite<T>(): (path: string, body?: object) => Promise<T> {
  const last = useRef({ asked: '', idempotencyKey: '' });
  return async (path, body = {}) => {
    const asked = JSON.stringify([path, body]);
    if (last.current.asked !== asked) {
      last.current = { asked, idempotencyKey: newIdempotencyKey() };
    }
    const { idempotencyKey } = last.current;
    const answer = await write<T>(path, body, { idempotencyKey });
    last.current = { asked: '', idempotencyKey: '' };
    return answer;
  };
}
