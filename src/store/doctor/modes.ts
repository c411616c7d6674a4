/** The mode of a row, which its ledger tells. */
import { TEST_LEDGER_MIN } from '../../domain/mode.ts';
import { sql } from '../database.ts';

/** Whether the row of this table alias belongs to test mode. */
export function isTestLedger(alias: string) {
  return sql.fragment`(${sql.identifier([alias, 'ledger'])} >= ${TEST_LEDGER_MIN}::int2)`;
}
