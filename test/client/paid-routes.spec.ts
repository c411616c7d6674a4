/** Paid routes against the API, the same in each framework: paid when they answer, never when they fail. */
import assert from 'node:assert/strict';
import { Farebox, type FareboxOptions } from '@farebox/client';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import { until } from '../support/stack.ts';
import { CuttingProxy } from './cutting-proxy.ts';
import { PaidBooks } from './paid-books.ts';
import { ran, SITES, type Site } from './paid-sites.ts';

interface Refusal {
  readonly error: Readonly<Record<string, unknown>>;
}

const keyOf = ({ consumerKey }: TestAccount) => ({ 'x-service-key': consumerKey });

describe('client: paid routes', () => {
  let api: TestApi;
  let account: TestAccount;
  let books: PaidBooks;

  before(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    Object.assign(ran, { times: 0, inFront: 0, closed: 0, late: Promise.withResolvers<void>() });
    account = await api.createAccount(10);
    books = new PaidBooks(api, account);
  });
  after(() => api?.stop());

  for (const [name, start] of Object.entries(SITES)) {
    describe(`of ${name}`, () => {
      let site: Site;
      /** Whether a handler may write the response without its framework. */
      const isRaw = name === 'fastify' || name === 'koa';

      async function open(options: FareboxOptions = {}): Promise<Site> {
        const secretKey = account.developerKey;
        site = await start(new Farebox({ secretKey, baseUrl: api.url, ...options }));
        return site;
      }
      afterEach(() => site?.close());

      it('are paid once when they answer, with the receipt in a header', async () => {
        await open();
        const response = await site.ask('/ok', { headers: keyOf(account) });
        assert.equal(response.status, 200);
        assert.deepEqual(await response.json(), { found: 'otters' });
        const [charge, ...others] = await books.charges();
        assert.deepEqual([charge?.amount, others], [0.5, []]);
        assert.equal(response.headers.get('x-charge-id'), charge?.id);
        assert.equal(response.headers.get('x-charge-receipt'), charge?.receipt);
        assert.equal(await books.balance(), 9.5);
      });

      it('cost what they came to, and the rest is given back', async () => {
        await open();
        const response = await site.ask('/settled', { headers: keyOf(account) });
        assert.deepEqual(await response.json(), { found: 'otters' });
        assert.deepEqual(
          (await books.charges()).map(({ amount }) => amount),
          [0.25],
        );
        assert.equal(await books.balance(), 9.75);
      });

      for (const [path, status] of [
        ['/fails', 422],
        ['/throws', 500],
      ] as const) {
        it(`are not paid when they answer ${status}`, async () => {
          await open();
          const response = await site.ask(path, { headers: keyOf(account) });
          assert.equal(response.status, status);
          assert.equal(response.headers.get('x-charge-id'), null);
          assert.deepEqual([await books.charges(), await books.holds()], [[], ['released']]);
          assert.deepEqual([await books.balance(), ran.times], [10, 1]);
        });
      }

      it('are not paid when they take too long, and what they answer then is not sent', async () => {
        await open();
        const response = await site.ask('/late', { headers: keyOf(account) });
        assert.equal(response.status, 504);
        assert.equal(response.headers.get('content-encoding'), null);
        const { error } = (await response.json()) as Refusal;
        assert.equal(error['code'], 'call_timed_out');
        assert.deepEqual([await books.charges(), await books.holds()], [[], ['released']]);
        ran.late.resolve();
        assert.equal((await site.ask('/ok', { headers: keyOf(account) })).status, 200);
        assert.deepEqual([await books.balance(), ran.times], [9.5, 2]);
      });

      it('are not paid when their caller leaves', async () => {
        await open();
        const caller = new AbortController();
        const init = { headers: keyOf(account), signal: caller.signal };
        const asked = site.ask('/waits', init).catch(() => undefined);
        await until(() => ran.times === 1);
        caller.abort();
        await asked;
        await until(async () => (await books.holds())[0] === 'released');
        assert.deepEqual([await books.charges(), await books.balance()], [[], 10]);
      });

      it('do not run for a caller who left before the price was held', async () => {
        await open();
        const caller = new AbortController();
        const init = { headers: keyOf(account), signal: caller.signal };
        const asked = site.ask('/left', init).catch(() => undefined);
        await until(() => ran.inFront === 1);
        caller.abort();
        await asked;
        assert.equal((await site.ask('/ok', { headers: keyOf(account) })).status, 200);
        assert.deepEqual([await books.holds(), ran.times], [['captured'], 1]);
      });

      it('are not paid when their caller leaves and the release is lost, though they answer later', async () => {
        // The request for the hold and its answer pass, that for the release does not; then all pass.
        let chunks = 0;
        const fate = () => ((chunks += 1) === 3 ? ('before' as const) : undefined);
        await using proxy = await CuttingProxy.start(api.url, fate);
        await open({ baseUrl: proxy.url, maxRetries: 0 });
        const caller = new AbortController();
        const init = { headers: keyOf(account), signal: caller.signal };
        const asked = site.ask('/slow', init).catch(() => undefined);
        await until(() => ran.times === 1);
        caller.abort();
        await asked;
        await until(() => chunks >= 3);
        ran.late.resolve();
        const answered = await site.ask('/ok', { headers: keyOf(account) });
        assert.equal(answered.status, 200);
        const ids = (await books.charges()).map(({ id }) => id);
        assert.deepEqual(ids, [answered.headers.get('x-charge-id')]);
      });

      for (const path of ['/ok', ...(isRaw ? ['/raw'] : [])]) {
        it(`are refunded when their caller leaves while they are captured: ${path}`, async () => {
          const caller = new AbortController();
          await open({
            fetch: async (url, init) => {
              const response = await fetch(url, init);
              if (!url.endsWith('/capture')) return response;
              caller.abort();
              await until(() => ran.closed === 1);
              return response;
            },
          });
          const init = { headers: keyOf(account), signal: caller.signal };
          await site.ask(path, init).catch(() => undefined);
          assert.deepEqual([(await books.charges()).length, ran.times], [1, 1]);
          await until(async () => (await books.balance()) === 10);
        });
      }

      it('do not run when the balance is too low, and refuse as the API does', async () => {
        await open();
        const poor = await api.createAccount(0.2);
        const response = await site.ask('/ok', { headers: keyOf(poor) });
        const body = { apiKey: poor.consumerKey, tool: 'search', amount: 0.5 };
        const request = { key: account.developerKey, body };
        const direct = await call(api, 'POST', '/v1/holds', request);
        assert.equal(response.status, direct.status);
        const { error } = (await response.json()) as Refusal;
        const { requestId: _, topUpUrl: __, ...facts } = (direct.body as Refusal).error;
        assert.partialDeepStrictEqual(error, facts);
        assert.partialDeepStrictEqual(error, { balance: 0.2, required: 0.5, shortfall: 0.3 });
        assert.match(String(error['topUpUrl']), /\/top-up\?link=/);
        assert.equal(ran.times, 0);
      });

      it('do not run without a key', async () => {
        await open();
        const response = await site.ask('/ok');
        assert.equal(response.status, 401);
        const { error } = (await response.json()) as Refusal;
        assert.equal(error['code'], 'invalid_api_key');
        assert.match(String(error['message']), /X-Service-Key/);
        assert.deepEqual([ran.times, await books.holds()], [0, []]);
      });

      it('show no caller what is wrong with the server’s own key', async () => {
        await open({ secretKey: `${account.developerKey}x` });
        const response = await site.ask('/ok', { headers: keyOf(account) });
        assert.equal(response.status, 500);
        const { error } = (await response.json()) as Refusal;
        assert.equal(error['code'], 'billing_error');
        assert.doesNotMatch(JSON.stringify(error), /secret/);
        assert.match(String(error['requestId']), /^req_/);
        assert.equal(ran.times, 0);
      });

      it('do not run when Farebox is away', async () => {
        await open({ baseUrl: 'http://127.0.0.1:9', maxRetries: 0 });
        const response = await site.ask('/ok', { headers: keyOf(account) });
        assert.equal(response.status, 503);
        const { error } = (await response.json()) as Refusal;
        assert.deepEqual([error['code'], error['outcome']], ['service_unavailable', 'not_held']);
        assert.equal(ran.times, 0);
      });

      for (const [status, code] of [
        [429, 'rate_limited'],
        [503, 'service_unavailable'],
      ] as const) {
        it(`say with ${status} how long to wait, as Farebox said it`, async () => {
          const error = { code, message: 'Wait.' };
          const init = { status, headers: { 'retry-after': '7' } };
          await open({ maxRetries: 0, fetch: async () => Response.json({ error }, init) });
          const response = await site.ask('/ok', { headers: keyOf(account) });
          const told = (await response.json()) as Refusal;
          assert.deepEqual([response.status, told.error['retryAfterMs']], [status, 7_000]);
          assert.equal(response.headers.get('retry-after'), '7');
          assert.equal(ran.times, 0);
        });
      }

      it('do not run when it is unknown whether their price is held, and leave nothing held', async () => {
        // The request for the hold passes, its answer is lost; then all pass.
        let chunks = 0;
        const fate = () => ((chunks += 1) === 2 ? ('before' as const) : undefined);
        await using proxy = await CuttingProxy.start(api.url, fate);
        await open({ baseUrl: proxy.url, maxRetries: 0 });
        const response = await site.ask('/ok', { headers: keyOf(account) });
        const { error } = (await response.json()) as Refusal;
        const { code, outcome, message } = error;
        assert.deepEqual([code, outcome], ['service_unavailable', 'not_charged']);
        assert.equal(message, 'Farebox did not respond in time; nothing was charged.');
        await until(async () => (await books.holds())[0] === 'released');
        assert.deepEqual([ran.times, await books.balance()], [0, 10]);
      });

      it('give no result that could not be paid for', async () => {
        // The request for the hold and its answer pass, then nothing does.
        let chunks = 0;
        const fate = () => ((chunks += 1) > 2 ? ('before' as const) : undefined);
        await using proxy = await CuttingProxy.start(api.url, fate);
        await open({ baseUrl: proxy.url, maxRetries: 0 });
        const response = await site.ask('/ok', { headers: keyOf(account) });
        assert.equal(response.status, 500);
        assert.doesNotMatch(await response.text(), /otters/);
        assert.deepEqual([await books.charges(), ran.times], [[], 1]);
      });

      it('fail as the handler would when their price cannot be computed', async () => {
        await open();
        const response = await site.ask('/unpriced', { headers: keyOf(account) });
        assert.equal(response.status, 500);
        assert.deepEqual([await books.holds(), ran.times], [[], 0]);
      });

      const unsettled = ['/unsettled', ...(isRaw ? ['/raw-unsettled'] : [])];
      for (const path of unsettled) {
        it(`answer that they failed, and are not paid, when their cost cannot be computed: ${path}`, async () => {
          await open();
          const response = await site.ask(path, { headers: keyOf(account) });
          assert.equal(response.status, 500);
          assert.equal(response.headers.get('content-encoding'), null);
          assert.doesNotMatch(await response.text(), /otters/);
          assert.deepEqual([await books.charges(), await books.holds()], [[], ['released']]);
        });
      }

      for (const path of ['/endless', ...(isRaw ? ['/raw-endless'] : [])]) {
        it(`are given up when computing their cost takes too long: ${path}`, async () => {
          await open();
          const response = await site.ask(path, { headers: keyOf(account) });
          assert.equal(response.status, 504);
          assert.equal(response.headers.get('content-encoding'), null);
          const { error } = (await response.json()) as Refusal;
          assert.equal(error['code'], 'call_timed_out');
          assert.deepEqual([await books.charges(), await books.holds()], [[], ['released']]);
        });
      }

      if (isRaw || name === 'express') {
        it('answer only with the failure when they had begun to write', async () => {
          await open();
          const response = await site.ask('/raw-begun', { headers: keyOf(account) });
          assert.equal(response.status, 500);
          assert.doesNotMatch(await response.text(), /begun/);
          assert.deepEqual([await books.charges(), await books.holds()], [[], ['released']]);
        });

        it('keep each of several headers of one name, and the text of the status', async () => {
          await open();
          const response = await site.ask('/raw-list', { headers: keyOf(account) });
          assert.deepEqual(response.headers.getSetCookie(), ['a=1', 'b=2']);
          assert.deepEqual([response.status, response.statusText], [200, 'Passed On']);
          assert.deepEqual(await response.json(), { found: 'otters' });
        });

        it('are answered with the status by which they are paid, though the handler fails after that', async () => {
          await open();
          const response = await site.ask('/raw-fails-after', { headers: keyOf(account) });
          assert.deepEqual([response.status, response.statusText], [200, 'OK']);
          assert.deepEqual(await response.json(), { found: 'otters' });
          const [charge] = await books.charges();
          assert.equal(response.headers.get('x-charge-id'), charge?.id);
          assert.deepEqual(await books.holds(), ['captured']);
        });
      }

      if (isRaw) {
        for (const [path, amount] of [
          ['/raw', 0.5],
          ['/ended', 0.5],
          ['/raw-settled', 0.25],
        ] as const) {
          it(`are paid once when the handler writes the response itself: ${path}`, async () => {
            await open();
            const response = await site.ask(path, { headers: keyOf(account) });
            assert.deepEqual(await response.json(), { found: 'otters' });
            const [charge, ...others] = await books.charges();
            assert.deepEqual([charge?.amount, others], [amount, []]);
            assert.equal(response.headers.get('x-charge-id'), charge?.id);
            assert.deepEqual([await books.holds(), ran.times], [['captured'], 1]);
          });
        }

        it('are not paid when the response that the handler writes itself is a failure', async () => {
          await open();
          const response = await site.ask('/raw-fails', { headers: keyOf(account) });
          assert.equal(response.status, 422);
          assert.deepEqual(await response.json(), { found: 'otters' });
          assert.deepEqual([await books.charges(), await books.holds()], [[], ['released']]);
        });

        it('give no response that the handler writes itself and that could not be paid for', async () => {
          // The request for the hold and its answer pass, then nothing does.
          let chunks = 0;
          const fate = () => ((chunks += 1) > 2 ? ('before' as const) : undefined);
          await using proxy = await CuttingProxy.start(api.url, fate);
          await open({ baseUrl: proxy.url, maxRetries: 0 });
          const response = await site.ask('/raw', { headers: keyOf(account) });
          assert.equal(response.status, 500);
          assert.doesNotMatch(await response.text(), /otters/);
        });

        it('are given up when the handler writes the response itself, and too late', async () => {
          await open();
          const response = await site.ask('/raw-late', { headers: keyOf(account) });
          assert.equal(response.status, 504);
          const { error } = (await response.json()) as Refusal;
          assert.equal(error['code'], 'call_timed_out');
          assert.deepEqual([await books.charges(), await books.holds()], [[], ['released']]);
          ran.late.resolve();
          assert.equal((await site.ask('/ok', { headers: keyOf(account) })).status, 200);
        });
      }

      if (name !== 'fetch' && name !== 'hono') return;

      it('give the response of a protocol switch as it is', async () => {
        await open();
        const response = await site.ask('/switched', { headers: keyOf(account) });
        assert.deepEqual([response.status, await books.holds()], [101, ['captured']]);
      });

      for (const path of ['/nothing', '/unsendable', '/read']) {
        it(`are not paid when there is no response to send: ${path}`, async () => {
          await open();
          const response = await site.ask(path, { headers: keyOf(account) });
          // Hono gives what cannot be sent to its server, which fails.
          if (name === 'fetch' || path === '/nothing') assert.equal(response.status, 500);
          assert.deepEqual([await books.charges(), await books.holds()], [[], ['released']]);
        });
      }
    });
  }
});
