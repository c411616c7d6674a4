/** The API without any worker: tails that grew long are shortened all the same, and reads stay exact. */
import assert from 'node:assert/strict';
import { EarningsReply } from '../../src/schemas/earnings.ts';
import { openEarningsDesk, type EarningsDesk, type Party } from '../support/earnings-desk.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { bodyOf, call } from '../support/http.ts';
import { until } from '../support/stack.ts';

describe('tails that no worker empties', () => {
  let api: TestApi;
  let desk: EarningsDesk;
  let developer: Party;

  before(async () => {
    api = await startTestApi({ processes: 2 });
    desk = await openEarningsDesk(api.databaseUrl);
    [developer] = (await desk.parties(1)) as [Party];
  });
  after(async () => {
    await desk?.close();
    await api?.stop();
  });

  const total = async () => {
    const key = developer.developerKey;
    const answer = await call(api, 'GET', '/v1/earnings', { key });
    return bodyOf(answer, 200, EarningsReply).totalEarnings;
  };

  it('are shortened by API processes once they are long, each row by one of them', async () => {
    // As days of flushes leave them.
    await desk.client.query(
      `insert into farebox.earnings_tail (ledger, developer, minute, tool, amount_micros, charges)
       select 0, $1, date_bin('1 minute', now() - n * interval '10 seconds', 'epoch'), 'search', 1, 1
       from generate_series(1, 60000) n`,
      [developer.developerNumber],
    );
    assert.equal(await total(), 0.06);
    await until(async () => (await desk.tailRows()) === 0);
    assert.equal(await total(), 0.06);
  });
});
