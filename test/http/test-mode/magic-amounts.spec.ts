/** Amounts that give an answer on demand: each of them in test mode, and none of them in live mode. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { MAGIC_TOP_UPS } from '../../../src/domain/magic-amounts.ts';
import { dollarsOf, asMicros } from '../../../src/domain/money.ts';
import { ChargeBatchReply } from '../../../src/schemas/charge-batches.ts';
import { ChargeReply } from '../../../src/schemas/charges.ts';
import { PlacedHoldReply } from '../../../src/schemas/holds.ts';
import { TopUpsReply } from '../../../src/schemas/top-ups.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { openTestApi } from '../../support/api.ts';
import { askHold } from '../../support/hold-requests.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../../support/http.ts';
import { until } from '../../support/stack.ts';
import { testSideOf, type TestSide } from '../../support/test-mode.ts';

const NO_BUDGET = `bdg_${'0'.repeat(32)}`;

const keyed = () => ({ 'idempotency-key': randomUUID() });
const idOf = (body: unknown) => (body as { error: { topUpId: string } }).error.topUpId;

describe('amounts that give an answer on demand', () => {
  const api = openTestApi();
  let live: TestAccount;
  let test: TestSide;

  before(async () => {
    live = await api.createAccount(20);
    test = await testSideOf(api, api.databaseUrl, live, 20);
    // Even a charge that is refused notes the name of its tool.
    assert.equal((await charge(api, test)).status, 201);
  });

  const topUp = (amount: number, headers = {}) =>
    call(api, 'POST', '/v1/top-up', { key: test.consumerKey, body: { amount }, headers });
  type Ask = (amount: number, headers?: Record<string, string>) => Promise<Answer>;
  const asks: Readonly<Record<string, Ask>> = {
    'a charge': (amount, headers) => charge(api, test, { amount }, headers),
    'a hold': (amount, headers) => askHold(api, test, { amount }, headers),
  };

  for (const [what, ask] of Object.entries(asks)) {
    describe(`of ${what}`, () => {
      it('refuse it as the real cause would, and change nothing', async () => {
        await api.changingNothing(async () => {
          assertError(await ask(0.990401), 401, 'invalid_api_key', 'apiKey');
          const poor = await ask(0.990402);
          const { error } = poor.body as { error: Record<string, unknown> };
          assert.deepEqual(
            [poor.status, error['code'], error['balance'], error['required'], error['shortfall']],
            [402, 'insufficient_balance', 0, 0.990402, 0.990402],
          );
          assert.equal((await fetch(String(error['topUpUrl']))).status, 200);
          assertError(await ask(0.990403), 402, 'spend_limit_reached', undefined, {
            budgetId: NO_BUDGET,
            scope: 'total',
            limit: 0.990403,
            remaining: 0,
            resetsAt: null,
            developerId: test.developerId,
            tool: 'search',
            required: 0.990403,
          });
          const limited = await ask(0.990429);
          assertError(limited, 429, 'rate_limited');
          const away = await ask(0.990503);
          assertError(away, 503, 'service_unavailable');
          for (const { headers } of [limited, away]) assert.equal(headers.get('retry-after'), '1');
        });
      });

      it('lose the answer after it was made; a repeat gets it', async () => {
        const key = keyed();
        assertError(await ask(0.9905, key), 500, 'outcome_unknown');
        const repeated = await ask(0.9905, key);
        assert.equal(repeated.status, 201);
        assert.equal(repeated.headers.get('idempotency-replayed'), 'true');
      });

      it('keep the answer back for longer than clients wait; a repeat gets it at once', async () => {
        const key = keyed();
        const gone = new AbortController();
        const path = what === 'a charge' ? 'charges' : 'holds';
        const first = fetch(`${api.url}/v1/${path}`, {
          method: 'POST',
          signal: gone.signal,
          headers: {
            ...key,
            authorization: `Bearer ${test.developerKey}`,
            'content-type': 'application/json',
          },
          body: JSON.stringify({
            apiKey: test.consumerKey,
            tool: 'search',
            amount: 0.990504,
          }),
        });
        let isAnswered = false;
        const ended = first.then(
          () => (isAnswered = true),
          () => {},
        );
        await untilMade(path);
        const repeated = await ask(0.990504, key);
        assert.equal(repeated.headers.get('idempotency-replayed'), 'true');
        bodyOf(repeated, 201, what === 'a charge' ? ChargeReply : PlacedHoldReply);
        assert.equal(isAnswered, false);
        gone.abort();
        await ended;
      });
    });
  }

  /** Waits for the charge or hold of the late answer. */
  const untilMade = (table: string) =>
    until(async () => {
      const made = await api.sql.query(
        `select id from farebox.${table} where amount_micros = 990504 and ledger >= 2048`,
      );
      return made.rows.length === 1;
    });

  it("come from a tool's price as well, and concern one charge of a batch", async () => {
    const key = test.developerKey;
    const tool = { name: 'declined', description: '', price: 0.990402 };
    assert.equal((await call(api, 'POST', '/v1/tools', { key, body: tool })).status, 201);
    const { consumerKey: apiKey } = test;
    const charges = [
      { apiKey, tool: 'declined' },
      { apiKey, tool: 'search', amount: 0.01 },
      { apiKey, tool: 'search', amount: 0.9905 },
      { apiKey, tool: 'search', amount: 0.990503 },
    ];
    const answer = await call(api, 'POST', '/v1/charges/batch', { key, body: { charges } });
    const { results } = bodyOf(answer, 200, ChargeBatchReply);
    assert.deepEqual(
      results.map(({ status }) => status),
      [402, 201, 500, 503],
    );
    const [, , , away] = results;
    assert.partialDeepStrictEqual(away, { error: { retryAfter: 1 } });
  });

  describe('of a top-up', () => {
    const ANSWERS = [
      [402.01, 402, 'card_declined'],
      [402.02, 402, 'authentication_required'],
      [402.03, 402, 'card_expired'],
      [402.04, 402, 'no_saved_card'],
      [402.05, 402, 'declined_too_often'],
      [403.01, 403, 'consent_required'],
      [403.02, 403, 'consent_ceiling_reached'],
      [429.01, 429, 'rate_limited'],
      [503.01, 503, 'service_unavailable'],
    ] as const;

    it('fail it or refuse it, and credit nothing', async () => {
      assert.deepEqual(
        ANSWERS.map(([amount]) => amount),
        [...MAGIC_TOP_UPS.keys()].map((micros) => dollarsOf(asMicros(micros))),
      );
      await api.changingNothing(async () => {
        for (const [amount, status, code] of ANSWERS) {
          const { status: given, body } = await topUp(amount);
          assert.deepEqual(
            [given, (body as { error: { code: string } }).error.code],
            [status, code],
          );
        }
        const key = keyed();
        const { body: first } = await topUp(402.01, key);
        const { body: again } = await topUp(402.01, key);
        assert.equal(idOf(first), idOf(again));
      });
      const listed = await call(api, 'GET', '/v1/top-up', { key: test.consumerKey });
      const { topUps } = bodyOf(listed, 200, TopUpsReply);
      assert.deepEqual(topUps.map(({ failure }) => failure?.code).slice(0, 5), [
        'card_declined',
        'no_saved_card',
        'card_expired',
        'authentication_required',
        'card_declined',
      ]);
    });
  });

  it('are amounts like any other in live mode', async () => {
    for (const amount of [0.990401, 0.990402, 0.990403, 0.990429, 0.990503, 0.9905, 0.990504]) {
      const made = bodyOf(await charge(api, live, { amount }), 201, ChargeReply);
      assert.equal(made.amount, amount);
      assert.equal((await askHold(api, live, { amount })).status, 201);
    }
  });
});
