/** How much the pages of operators show. */

/** The most items of each kind on the status page, but for those that only wait. */
export const LISTED_MAX = 50;
/** The most accounts that a search finds. */
export const FOUND_MAX = 20;
