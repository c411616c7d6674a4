/** The API without any worker: long tails are still shortened, and reads stay exact. */
import assert from 'node:assert/strict';
import { EarningsReply } from '../../src/schemas/earnings.ts';
import {
  openEarningsHarness,
  type EarningsHarness,
  type Party,
} from '../support/earnings-harness.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { bodyOf, call } from '../support/http.ts';
import { until } from '../support/stack.ts';

describe('tails while no worker runs', () => {
  let api: TestApi;
  let harness: EarningsHarness;
  let developer: Party;

  before(async () => {
    api = await startTestApi({ servers: 2 });
    harness = await openEarningsHarness(api.databaseUrl);
    [developer] = (await harness.parties(1)) as [Party];
  });
  after(async () => {
    await harness?.close();
    await api?.stop();
  });

  const total = async () => {
    const key = developer.developerKey;
    const answer = await call(api, 'GET', '/v1/earnings', { key });
    return bodyOf(answer, 200, EarningsReply).totalEarnings;
  };

  it('are shortened by API servers once they are long, each row by one server', async () => {
    // As days of flushes would leave them.
    await harness.client.query(
      `insert into farebox.earnings_tail (ledger, developer, minute, tool, amount_micros, charges)
       select 0, $1, date_bin('1 minute', now() - n * interval '10 seconds', 'epoch'), 'search', 1, 1
       from generate_series(1, 60000) n`,
      [developer.developerNumber],
    );
    assert.equal(await total(), 0.06);
    await until(async () => (await harness.tailRows()) === 0);
    assert.equal(await total(), 0.06);
  });
});
