/** How far apart clocks may be before the audit calls it a finding. */
import { sql } from '../database.ts';

/** The bound within which src/store/balance/spent.ts is exact, and far more than a charge or a transaction waits. */
export const CLOCKS_APART_MAX = sql.fragment`interval '10 minutes'`;
