/** One idempotency key sent several times at once, to any server: one charge, the same answer for all. */
import assert from 'node:assert/strict';
import { ChargeBatchReply } from '../../src/schemas/charge-batches.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { bodyOf, call, type Answer } from '../support/http.ts';
import { holdConsumer, waitedTooLong } from '../support/row-locks.ts';
import type { Server } from '../support/stack.ts';

interface Result {
  readonly status: number;
  readonly replayed?: true;
  readonly balance?: number;
  readonly error?: { readonly code: string };
}

/** All are the same answer to the one charge; all but one are marked as replays. */
function assertOneIsFresh(results: readonly Result[]): void {
  const [first] = results;
  assert.equal(first?.status, 201);
  const unmarked = { ...first, replayed: undefined };
  for (const result of results) assert.deepEqual({ ...result, replayed: undefined }, unmarked);
  assert.equal(results.filter(({ replayed }) => !replayed).length, 1);
}

const resultsOf = (answer: Answer): Result[] => bodyOf(answer, 200, ChargeBatchReply).results;

describe('the same key at the same time', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi({ servers: 2 });
  });
  beforeEach(async () => {
    account = await api.createAccount(10);
  });
  after(() => api?.stop());

  const body = (amount = 4) => ({ apiKey: account.consumerKey, tool: 'search', amount });

  const charge = (server: Server, idempotencyKey: string) =>
    call(server, 'POST', '/v1/charges', {
      key: account.developerKey,
      headers: { 'idempotency-key': idempotencyKey },
      body: body(),
    });

  const batch = (server: Server, charges: readonly object[]): Promise<Answer> =>
    call(server, 'POST', '/v1/charges/batch', { key: account.developerKey, body: { charges } });

  /**
   * Sends to both servers, and lets each statement wait for the consumer before either may continue. Again, with
   * another account, if one of them waited for longer than it may.
   */
  async function onBothAtOnce(
    send: (server: Server) => Promise<Answer>,
  ): Promise<[Answer, Answer]> {
    for (;;) {
      // Both know its key and its tool, so that only the statement is left to wait for.
      for (const server of api.servers) await charge(server, 'warm-up');
      const held = await holdConsumer(api.databaseUrl, account.consumerId);
      const [one, other] = api.servers as readonly [Server, Server];
      const sent = [send(one), send(other)] as const;
      await held.waited(2, ...sent);
      await held.release();
      const answers = await Promise.all(sent);
      if (!answers.some(waitedTooLong)) return answers;
      account = await api.createAccount(10);
    }
  }

  const balance = async () =>
    (await call(api, 'GET', '/v1/balance', { key: account.consumerKey })).body as {
      balance: number;
    };

  it('makes one charge of two in one batch', async () => {
    const twice = { ...body(), idempotencyKey: 'job 1' };
    const again = { ...body(1), idempotencyKey: 'job 1' };
    const results = resultsOf(await batch(api, [twice, twice, again]));
    assertOneIsFresh(results.slice(0, 2));
    assert.equal(results[2]?.error?.code, 'idempotency_key_reused');
    assert.equal((await balance()).balance, 6);
  });

  it('makes one charge of a hundred at once on one server', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => charge(api, 'job 2')));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]));
    assert.equal(new Set(answers.map((answer) => JSON.stringify(answer.body))).size, 1);
    const fresh = answers.filter(({ headers }) => !headers.has('idempotency-replayed'));
    assert.equal(fresh.length, 1);
    assert.equal((await balance()).balance, 6);
  });

  it('makes one charge of two on two servers', async () => {
    const answers = await onBothAtOnce((server) => charge(server, 'job 3'));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 201],
    );
    assert.deepEqual(answers[0].body, answers[1].body);
    const replays = answers.filter(({ headers }) => headers.has('idempotency-replayed'));
    assert.equal(replays.length, 1);
    assert.equal((await balance()).balance, 2);
  });

  // Without a refused one, the quick statement decides; with it, the thorough one does.
  for (const [what, tooMuch] of [
    ['that fits', []],
    ['of which one charge does not fit', [1_000]],
  ] as const) {
    it(`makes each charge once when two servers are sent the same batch, ${what}`, async () => {
      const keys = ['a', 'b', 'c'];
      const answers = await onBothAtOnce((server) =>
        batch(server, [
          ...tooMuch.map((amount) => body(amount)),
          ...keys.map((idempotencyKey) => ({ ...body(1), idempotencyKey })),
        ]),
      );
      const [one, other] = answers.map(resultsOf) as [Result[], Result[]];
      for (const results of [one, other]) {
        for (const { status } of results.splice(0, tooMuch.length)) assert.equal(status, 402);
      }
      for (const at of keys.keys()) {
        assertOneIsFresh([one[at] as Result, other[at] as Result]);
      }
      assert.equal((await balance()).balance, 3);
    });
  }

  it('lets one of two charges succeed when the balance does not cover both', async () => {
    const answers = await onBothAtOnce((server) => charge(server, server.url));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201, 402]));
    assert.equal((await balance()).balance, 2);
  });

  it('leaves the books correct', () => proveBooks(api.env, { processor: false }));
});
