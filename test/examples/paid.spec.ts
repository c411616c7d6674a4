/** The example's paid(): a tool that fails costs nothing. */
import assert from 'node:assert/strict';
import { Farebox } from '@farebox/client';
import type { ServerContext } from '@modelcontextprotocol/server';
import { paid } from '../../examples/mcp-tool-server/paid.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { balanceOf } from '../support/payments.ts';

function run(): never {
  throw new Error('the tool is broken');
}

describe('example: a paid tool that fails', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());

  it('is refunded, and reports its own error', async () => {
    const account = await api.createAccount(1);
    const farebox = new Farebox({ secretKey: account.developerKey, baseUrl: api.url });
    const tool = paid(farebox, farebox.withPrices({ broken: 0.5 }), 'broken', run);
    const headers = new Headers({ 'x-service-key': account.consumerKey });
    const context = { http: { req: { headers } } } as unknown as ServerContext;
    await assert.rejects(tool({}, context), /the tool is broken/);
    assert.equal(await balanceOf(api, account), 1);
    assert.equal((await farebox.earnings()).totalEarnings, 0);
    const [charge] = (await farebox.charges().page()).charges;
    assert.deepEqual([charge?.amount, charge?.refunded], [0.5, 0.5]);
  });
});
