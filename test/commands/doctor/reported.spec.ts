/** Each check of doctor has a corruption that fails it, and each reported corruption is planted. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TEMPORAL_CHECKS } from '../../../src/commands/doctor-temporal.ts';
import { checkNames, LEDGER_PARTS } from '../../../src/store/doctor/ledger-checks.ts';
import { SCHEMA_CHECK } from '../../../src/store/doctor/schema-checks.ts';
import { PROCESSOR_CHECK } from '../../../src/stripe/examine-processor.ts';
import type { Planted } from './planted-books.ts';
import { PLANTS } from './plants/all.ts';
import { AUDIT_LOG_FAULTS } from './plants/audit-log.ts';
import { EARNINGS_FAULTS } from './plants/earnings.ts';
import { SCHEMA_CHANGES } from './plants/schema.ts';
import { REPORTED, SHOWN_ELSEWHERE } from './reported.ts';

/** Beyond those that were reported. */
const MORE_MIN = 20;

const ANY: Planted = {
  account: '',
  consumer: '',
  manual: '',
  checkout: '',
  manualCredit: '',
  checkoutCredit: '',
  adjustment: '',
  firstCharge: '',
  lastCharge: '',
  developer: '',
};

/**
 * Each planted corruption and the checks that fail on it. Correct books are left out, because no check fails
 * on them.
 */
const corruptions = [
  ...PLANTS.flatMap(([, plants]) => plants.map(({ what, finds }) => ({ what, finds: finds(ANY) }))),
  ...AUDIT_LOG_FAULTS,
  ...EARNINGS_FAULTS,
  ...SCHEMA_CHANGES.map(({ what }) => ({ what, finds: [[SCHEMA_CHECK]] as const })),
]
  .map(({ what, finds }) => ({ what, checks: finds.map(([check]) => check) }))
  .filter(({ checks }) => checks.length > 0);

describe('the corruptions that tests plant', () => {
  it('fail each check of doctor, and no check that it lacks', () => {
    const checks = [
      ...LEDGER_PARTS.flatMap((part) =>
        checkNames(part, { masterSecrets: [1], reconcileEverySeconds: 900 }),
      ),
      ...TEMPORAL_CHECKS,
      PROCESSOR_CHECK,
    ];
    const failed = [
      ...corruptions.flatMap((corruption) => corruption.checks),
      ...Object.keys(SHOWN_ELSEWHERE),
    ];
    assert.deepEqual([...new Set(failed)].toSorted(), checks.toSorted());
  });

  it('name tests that exist, for the checks that need more than rows', async () => {
    for (const [file, title] of Object.values(SHOWN_ELSEWHERE)) {
      const text = await readFile(join(import.meta.dirname, '../..', file), 'utf8');
      assert.ok(text.includes(`'${title}'`), `${file} has no test "${title}"`);
    }
  });

  it('include the 53 that were reported, but for those that nothing shows, and 20 more', () => {
    const titles = new Set([
      ...corruptions.map(({ what }) => what),
      ...Object.values(SHOWN_ELSEWHERE).map(([, title]) => title),
    ]);
    const planted = Object.values(REPORTED).filter((shown) => typeof shown === 'string');
    assert.equal(Object.keys(REPORTED).length, 53);
    assert.deepEqual(
      planted.filter((title) => !titles.has(title)),
      [],
    );
    assert.ok(titles.size >= new Set(planted).size + MORE_MIN);
  });
});
