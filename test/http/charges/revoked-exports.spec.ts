/** Exports whose key is revoked while they are read. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { uuidOf } from '../../../src/domain/ids.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { call } from '../../support/http.ts';
import { until } from '../../support/stack.ts';

describe('an export', () => {
  let api: TestApi;
  let locker: Client;

  before(async () => {
    api = await startTestApi();
    locker = new Client({ connectionString: api.databaseUrl });
    await locker.connect();
  });
  after(async () => {
    await locker?.end();
    await api?.stop();
  });

  it('breaks off when the key that asked for it is revoked', async () => {
    const { consumerKey, consumerId, developerKey } = await api.createAccount(100);
    const member = { apiKey: consumerKey, tool: 'many', amount: 0.01 };
    const body = { charges: Array.from({ length: 700 }, () => member) };
    await call(api, 'POST', '/v1/charges/batch', { key: developerKey, body });
    await locker.query('begin; lock table farebox.charges in access exclusive mode');
    const headers = { authorization: `Bearer ${consumerKey}` };
    const failed = assert.rejects(
      fetch(`${api.url}/v1/usage.csv`, { headers }).then((response) => response.text()),
      /terminated/,
    );
    await until(async () => (await api.waitingBackend()) !== undefined);
    await locker.query(
      `update farebox.api_keys k set revoked_at = now(), changed_at = now() from farebox.accounts a
       where a.id = k.account_id and k.kind = 'consumer' and a.consumer_id = $1`,
      [uuidOf('consumer', consumerId)],
    );
    await locker.query('commit');
    await failed;
  });
});
