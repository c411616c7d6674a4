/** Verifies the events that Farebox sends to a webhook endpoint. */

/** Something that happened to the account. */
export interface FareboxEvent {
  /** The same at each delivery of the event: skip ids that you have handled. */
  id: string;
  /** Such as `top_up.completed`. Ignore types that you do not know. */
  type: string;
  /** When it happened, in UTC. */
  timestamp: string;
  /** The API reference has the members for each type. */
  data: Record<string, unknown>;
}

export interface WebhookRequest {
  /** The body as it arrived, before it is parsed. */
  body: string | Uint8Array | ArrayBuffer;
  /** Names in any case. */
  headers: { get(name: string): string | null } | Record<string, string | string[] | undefined>;
  /** The signing secret of the endpoint: `whsec_...`. */
  secret: string;
  /** How old the signature may be. Default: 300. */
  toleranceSeconds?: number | undefined;
}

/** Throws a FareboxError with the code `invalid_signature` unless Farebox sent this, just now. */
export declare function verifyWebhook(request: WebhookRequest): Promise<FareboxEvent>;
