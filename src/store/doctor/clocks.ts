/** How far apart clocks may be before doctor reports it. */
import { sql } from '../database.ts';

/** For times by the clocks of different processes. Far longer than a transaction waits. */
export const CLOCKS_APART_MAX = sql.fragment`interval '10 minutes'`;
