/** The states of a hold, in the order of their numbers in the database, and how long a hold may last. */
export const HOLD_STATUSES = ['open', 'captured', 'released', 'expired'] as const;

export type HoldStatus = (typeof HOLD_STATUSES)[number];

/** A call that takes longer can extend its hold. */
export const HOLD_SECONDS_DEFAULT = 600;
/** A hold ends at the latest 24 hours after it was placed, even when it was extended. */
export const HOLD_SECONDS_MAX = 86_400;

/** What a capture of more than the hold has left does. */
export const OVER_MODES = ['reject', 'cap', 'overflow'] as const;

export type OverMode = (typeof OVER_MODES)[number];
