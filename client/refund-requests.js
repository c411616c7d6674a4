/** Refunds of charges over the wire: each one by itself, under one idempotency key for all attempts. */
import { failureOf } from './transport.js';

/** The answer: `{ refund }`, or a failure of transport.js. */
export async function postRefund(transport, { chargeId, amount, idempotencyKey }, timeoutMs) {
  const response = await transport.request(`/v1/charges/${chargeId}/refund`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': idempotencyKey },
    body: JSON.stringify({ amount }),
    timeoutMs,
  });
  const { status, header, json } = response;
  const isMade = status >= 200 && status < 300;
  if (isMade && typeof json?.id === 'string' && typeof json.refunded === 'number') {
    return { refund: { ...json, replayed: header('idempotency-replayed') === 'true' } };
  }
  return failureOf(response);
}
