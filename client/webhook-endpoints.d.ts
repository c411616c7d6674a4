/** Webhook endpoints, as `Farebox.webhookEndpoints` has them. */
import type {
  DeletedWebhookEndpointReply,
  DeliveriesReply,
  DeliveryReply,
  NewWebhookEndpointReply,
  RolledSecretReply,
  WebhookEndpointBody,
  WebhookEndpointChanges,
  WebhookEndpointReply,
  WebhookEndpointsReply,
} from './api.js';
import type { CallOptions, List, PageSize } from './index.js';

/**
 * Where your events are sent. `create` and `rollSecret` send an idempotency key, a random one by default, so
 * that a retry gets the same endpoint and secret. A `delete`, `test` or `redeliver` that may have succeeded
 * is not sent again.
 */
export interface WebhookEndpoints {
  /** Only this reply has the `secret`, and that of a retry with the same `idempotencyKey`. */
  create(
    endpoint: WebhookEndpointBody & { idempotencyKey?: string | undefined },
    options?: CallOptions,
  ): Promise<NewWebhookEndpointReply>;
  /** Oldest first. */
  list(filter?: PageSize, options?: CallOptions): List<WebhookEndpointReply, WebhookEndpointsReply>;
  get(id: string, options?: CallOptions): Promise<WebhookEndpointReply>;
  /** Omitted members are not changed. */
  update(
    id: string,
    changes: WebhookEndpointChanges,
    options?: CallOptions,
  ): Promise<WebhookEndpointReply>;
  delete(id: string, options?: CallOptions): Promise<DeletedWebhookEndpointReply>;
  /** Makes a new secret. The old one also signs for `overlapSeconds`. */
  rollSecret(
    id: string,
    request?: { overlapSeconds?: number | undefined; idempotencyKey?: string | undefined },
    options?: CallOptions,
  ): Promise<RolledSecretReply>;
  /** Sends a test event. */
  test(id: string, options?: CallOptions): Promise<DeliveryReply>;
  /** Newest first. */
  listDeliveries(
    id: string,
    filter?: PageSize & { status?: DeliveryReply['status'] | undefined },
    options?: CallOptions,
  ): List<DeliveryReply, DeliveriesReply>;
  /** Sends an event again. */
  redeliver(id: string, eventId: string, options?: CallOptions): Promise<DeliveryReply>;
}
