/**
 * Paid tools and routes of a server that pays others by itself: what Farebox refuses to that server is its
 * own error, and not a refusal to its caller. The caller would otherwise see the server's balance and a link
 * to top up the server's account.
 */
import assert from 'node:assert/strict';
import { Farebox, type FareboxError } from '@farebox/client';
import { paidTool } from '@farebox/client/mcp';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { PaidBooks } from './paid-books.ts';
import { ran, SITES, type Site } from './paid-sites.ts';
import { raised } from './scripted-service.ts';

const answer = () => ({ content: [] });

describe('client: paid calls whose server is refused a payment of its own', () => {
  let api: TestApi;
  let account: TestAccount;
  let books: PaidBooks;
  let farebox: Farebox;
  let own: FareboxError;
  let site: Site | undefined;
  const { error: plain } = ran;

  before(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    account = await api.createAccount(10);
    books = new PaidBooks(api, account);
    farebox = new Farebox({ secretKey: account.developerKey, baseUrl: api.url });
    const { consumerKey: apiKey } = await api.createAccount(0.2);
    own = await raised(farebox.charge({ apiKey, tool: 'upstream', amount: 1 }));
    assert.match(String(own.topUpUrl), /link=/);
    ran.error = own;
  });
  afterEach(async () => {
    ran.error = plain;
    await site?.close();
  });
  after(() => api?.stop());

  for (const [name, start] of Object.entries(SITES)) {
    const isRaw = name === 'fastify' || name === 'koa';
    const paths = ['/throws', '/unpriced', '/unsettled', ...(isRaw ? ['/raw-unsettled'] : [])];
    for (const path of paths) {
      it(`fail as they would by any other error: ${path} of ${name}`, async () => {
        site = await start(farebox);
        const headers = { 'x-service-key': account.consumerKey };
        const response = await site.ask(path, { headers });
        // Some frameworks take the status of an error for that of the response.
        assert.ok(response.status >= 400);
        assert.doesNotMatch(await response.text(), /topUpUrl|link=|shortfall/);
        const held = path === '/unpriced' ? [] : ['released'];
        assert.deepEqual([await books.charges(), await books.holds()], [[], held]);
      });
    }
  }

  const fail = (): never => {
    throw own;
  };
  const tools = {
    handler: () => paidTool(farebox, { tool: 'search', price: 1 }, fail),
    price: () => paidTool(farebox, { tool: 'search', price: fail }, answer),
    cost: () => paidTool(farebox, { tool: 'search', max: 1, settle: fail }, answer),
    'cost, though they may run unpaid': () => {
      const options = {
        tool: 'search',
        max: 1,
        settle: fail,
        onUnavailable: 'run_unpaid',
      } as const;
      return paidTool(farebox, options, answer);
    },
  };
  for (const [name, create] of Object.entries(tools)) {
    it(`throw it on to the MCP server: ${name}`, async () => {
      const call = create() as (context: object) => Promise<unknown>;
      const headers = new Headers({ 'x-service-key': account.consumerKey });
      assert.equal(await raised(call({ requestInfo: { headers } })), own);
      const held = name === 'price' ? [] : ['released'];
      assert.deepEqual([await books.charges(), await books.holds()], [[], held]);
    });
  }
});
