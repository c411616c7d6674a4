/**
 * The layout of `charges.origin`, which says where a charge comes from: four bytes for the number of the spend key,
 * two for the version of the rate card, sixteen for the hold that was captured. Missing parts are 0, or left out at
 * the end: a plain charge has no bytes, a capture has 22. `post_fitting_groups_2`, `post_charges_2`, `post_entries_2`
 * and `settle_lease` in migrations/functions write it. Each fragment takes the name that the statement gives to the
 * charges.
 */
import { sql, type Fragment } from '../database.ts';

const originOf = (charges: string) => sql.identifier([charges, 'origin']);

/** The number of the spend key. 0: none. */
export function spendKeyOf(charges: string): Fragment {
  return sql.fragment`substr(${originOf(charges)}, 1, 4)::int4`;
}

/** Whether a spend key paid. The second condition implies the first, which passes over plain charges sooner. */
export function isOfKey(charges: string): Fragment {
  return sql.fragment`(${originOf(charges)} <> '' and ${spendKeyOf(charges)} > 0)`;
}

/** Whether the charge captured a hold. */
export function isOfHold(charges: string): Fragment {
  return sql.fragment`(length(${originOf(charges)}) = 22)`;
}

/** The version of the rate card that priced it. 0: none. */
export function cardVersionOf(charges: string): Fragment {
  return sql.fragment`substr(${originOf(charges)}, 5, 2)::int2`;
}

/** The id of the hold that the charge captured. Null: none. */
export function holdIdOf(charges: string): Fragment {
  return sql.fragment`case when ${isOfHold(charges)} then encode(substr(${originOf(charges)}, 7), 'hex')::uuid end`;
}
