/** Calls agents that accept a POST with JSON and answer with JSON. */
import { failed, type Adapter } from './adapter.ts';

export const callHttp: Adapter = async (request, guarded) => {
  const { invocationId, callerId, capability, payload } = request;
  const response = await guarded.fetch(request.endpoint, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json',
      'Idempotency-Key': invocationId,
    },
    body: JSON.stringify({ invocationId, callerId, capability, payload }),
  });
  const text = await response.text();
  if (!response.ok) return failed('agent_refused', `It answered ${response.status}: ${text}`);
  if (text === '') return { kind: 'answered', value: null };
  try {
    return { kind: 'answered', value: JSON.parse(text) };
  } catch {
    return failed('invalid_answer', 'Its answer is not JSON.');
  }
};
