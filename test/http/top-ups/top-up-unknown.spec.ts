/** A top-up that is stored before the database fails. */
import assert from 'node:assert/strict';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, call } from '../../support/http.ts';

describe('a top-up whose request fails after it was stored', () => {
  let api: TestApi;

  // Without Temporal, so each request withdraws the top-up that it stored.
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  it('is never answered with "nothing happened"', async () => {
    const { consumerKey } = await api.createAccount(10);
    await api.sql.query(`
      create function farebox.test_refuse_delete() returns trigger language plpgsql as $$
      begin raise exception 'busy' using errcode = 'lock_not_available'; end $$;
      create trigger test_refuse_delete before delete on farebox.top_ups
      for each row execute function farebox.test_refuse_delete()
    `);
    const topUp = () =>
      call(api, 'POST', '/v1/checkout', {
        key: consumerKey,
        headers: { 'idempotency-key': 'once' },
        body: { amount: 20 },
      });
    const stored = async () => {
      const { rows } = await api.sql.query("select from farebox.top_ups where status = 'pending'");
      return rows.length;
    };
    assertError(await topUp(), 500, 'outcome_unknown');
    assert.equal(await stored(), 1);

    await api.sql.query('drop trigger test_refuse_delete on farebox.top_ups');
    assertError(await topUp(), 503, 'service_unavailable');
    assert.equal(await stored(), 0);
  });
});
