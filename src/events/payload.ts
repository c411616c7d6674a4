/** What an event says: in what is sent to a webhook endpoint, and in the log of it. */
import type { Delivery } from '../store/events/deliveries.ts';

export function payloadOf({
  type,
  createdAt,
  data,
}: Pick<Delivery, 'type' | 'createdAt' | 'data'>) {
  return { type, timestamp: createdAt, data: JSON.parse(data) as Record<string, unknown> };
}
