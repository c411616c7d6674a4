/** The life of a grant (legacy, specification section 4.4): its types and states. */

/** Good for one invocation, for many until it expires, or for `maxUses` of them. */
export const GRANT_TYPES = ['one_time', 'session', 'limited'] as const;
export type GrantType = (typeof GRANT_TYPES)[number];

/** Only an active grant can be used; the other states are final. */
export const GRANT_STATUSES = ['active', 'used', 'revoked', 'expired'] as const;
export type GrantStatus = (typeof GRANT_STATUSES)[number];

/** The most active grants of one account. Each has a workflow, which waits for its end. */
export const ACTIVE_GRANTS_MAX = 10_000;
