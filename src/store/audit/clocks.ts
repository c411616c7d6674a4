/** How far apart clocks may be before the audit reports it. */
import { sql } from '../database.ts';

/** Within this bound, src/store/balance/spent.ts is exact. Far longer than a charge or a transaction waits. */
export const CLOCKS_APART_MAX = sql.fragment`interval '10 minutes'`;
