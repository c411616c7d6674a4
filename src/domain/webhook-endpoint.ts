/** Webhook endpoints: their states and limits. What one delivery does is in webhook-delivery.ts. */

export const WEBHOOK_ENDPOINT_STATUSES = ['active', 'disabled'] as const;
export type WebhookEndpointStatus = (typeof WEBHOOK_ENDPOINT_STATUSES)[number];

/** `owner`: by its owner. `failing`: it failed for `GIVEN_UP_AFTER_DAYS`. `gone`: it answered 410. */
export const DISABLED_REASONS = ['owner', 'failing', 'gone'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

export const WEBHOOK_ENDPOINTS_MAX = 10;
export const WEBHOOK_URL_MAX = 2_000;

/** How long both secrets sign after a roll: a day by default. */
export const SECRET_OVERLAP_SECONDS = 86_400;
export const SECRET_OVERLAP_SECONDS_MAX = 7 * 86_400;
