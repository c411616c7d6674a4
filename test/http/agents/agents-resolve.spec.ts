/**
 * POST /resolve and /intent/preview: ranked, bounded and deterministic, with an unknown intent rather than an
 * error.
 */
import assert from 'node:assert/strict';
import { IntentReply, ResolveReply } from '../../../src/schemas/agents.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { assertError, bodyOf, call } from '../../support/http.ts';

describe('POST /resolve', () => {
  let api: TestApi;
  let owner: TestAccount;
  let stranger: TestAccount;

  before(async () => {
    api = await startTestApi();
    owner = await api.createAccount(0);
    stranger = await api.createAccount(0);
    const agents = [
      { id: 'named', name: 'Otter', intents: ['otter.find', 'unknown'] },
      { id: 'offering', name: 'Zookeeper', capabilities: ['feed_otter'] },
      { id: 'describing', name: 'River Guide', description: 'May show an otter', protocol: 'a2a' },
      { id: 'wordy', name: 'Otter Holt Mapping Harness' },
      { id: 'mute', name: 'Silent Sloth' },
      ...Array.from({ length: 60 }, (_, n) => ({ id: `clone-${n}`, name: 'Penguin Clone' })),
    ];
    for (const agent of agents) {
      const body = { protocol: 'mcp', endpoint: 'https://example.com/', ...agent };
      assert.equal((await post('/register', body)).status, 201);
    }
  });
  after(() => api.stop());

  const post = (path: string, body: unknown, { legacyKey } = owner) =>
    call(api, 'POST', path, { headers: { 'x-service-key': legacyKey }, body });
  const resolve = async (query: string, more: object = {}) =>
    bodyOf(await post('/resolve', { query, ...more }), 200, ResolveReply);
  const idsOf = async (query: string, more: object = {}) =>
    (await resolve(query, more)).results.map(({ agentId }) => agentId);

  const preview = async (query: string) =>
    bodyOf(await post('/intent/preview', { query }), 200, IntentReply).intent;

  it('ranks a name above an agent’s capabilities, and those above its description', async () => {
    assert.deepEqual(await idsOf('otter'), ['named', 'wordy', 'offering', 'describing']);
  });

  it('returns scores from 0 to 1 in falling order, with the protocol', async () => {
    const { results } = await resolve('otter');
    assert.equal(results[0]?.score, 1);
    const scores = results.map(({ score }) => score);
    assert.deepEqual(
      scores,
      scores.toSorted((a, b) => b - a),
    );
    assert.ok(scores.every((score) => score > 0 && score <= 1));
    assert.equal(results.find(({ agentId }) => agentId === 'describing')?.protocol, 'a2a');
  });

  it('returns five results by default, and never more than topK', async () => {
    assert.equal((await idsOf('penguin')).length, 5);
    for (const topK of [1, 2, 49, 50])
      assert.equal((await idsOf('penguin', { topK })).length, topK);
    assert.equal((await idsOf('sloth', { topK: 50 })).length, 1);
  });

  for (const topK of [0, -1, 51, 1e9, 1.5, '5', null, true, []]) {
    it(`refuses the topK ${JSON.stringify(topK)}`, async () => {
      assertError(await post('/resolve', { query: 'x', topK }), 400, 'invalid_request', 'topK');
    });
  }

  it('finds the same agents in the same order every time, also for equal scores', async () => {
    const first = await idsOf('penguin clone', { topK: 50 });
    assert.deepEqual(first, first.toSorted());
    for (let n = 0; n < 3; n += 1) {
      assert.deepEqual(await idsOf('penguin clone', { topK: 50 }), first);
    }
  });

  it('gives a lower score to agents that match less of the query', async () => {
    const whole = (await resolve('penguin clone')).results[0]?.score ?? 0;
    const half = (await resolve('penguin harbour')).results[0]?.score ?? 0;
    const misspelled = (await resolve('pengiun clone')).results[0]?.score ?? 0;
    assert.ok(half < misspelled && misspelled < whole);
  });

  it('finds agents of every account', async () => {
    const answer = await post('/resolve', { query: 'sloth' }, stranger);
    assert.equal(bodyOf(answer, 200, ResolveReply).results[0]?.agentId, 'mute');
  });

  const lost = [
    'xyzzy',
    'the of and',
    '???',
    '🦦',
    "')) or 'x'='x' --",
    ':* & | !',
    'тюлень',
    '翻訳',
  ];
  for (const query of [...lost, 'x'.repeat(1_000), '9'.repeat(1_000), 'й'.repeat(1_000)]) {
    it(`returns no result and an unknown intent for ${query.slice(0, 20)}`, async () => {
      assert.deepEqual(await resolve(query), {
        results: [],
        intent: { name: 'unknown', confidence: 0 },
      });
    });
  }

  it('ranks by the known words of a query of the greatest length', async () => {
    const query = `otter ${'& | lorem42 ipsum '.repeat(55)}`.slice(0, 1_000);
    assert.equal((await idsOf(query))[0], 'named');
  });

  for (const path of ['/resolve', '/intent/preview']) {
    for (const query of [
      '',
      ' ',
      '\n\t',
      'x'.repeat(1_001),
      'a\u0000b',
      '\ud800',
      7,
      null,
      {},
      [],
    ]) {
      const shown = JSON.stringify(query);
      it(`refuses at ${path} a query that is ${shown.length > 20 ? 'too long' : shown}`, async () => {
        assertError(await post(path, { query }), 400, 'invalid_request', 'query');
      });
    }

    it(`refuses at ${path} a body without a query`, async () => {
      assertError(await post(path, {}), 400, 'invalid_request', 'query');
    });
  }

  describe('intent', () => {
    it('is one that an agent registered, spelled the same way', async () => {
      assert.deepEqual(await preview('find otter'), { name: 'otter.find', confidence: 1 });
      assert.deepEqual(await preview('feeding otters'), { name: 'feed_otter', confidence: 1 });
    });

    it('is the same in a preview as next to the agents', async () => {
      for (const query of ['otter', 'feed a penguin', 'xyzzy']) {
        assert.deepEqual(await preview(query), (await resolve(query, { topK: 1 })).intent);
      }
    });

    it('is less certain the less of the query it has, and the more other words it has', async () => {
      const certain = await preview('find an otter');
      const partly = await preview('find an otter for my friend in Bristol');
      const vague = await preview('otter');
      assert.equal(partly.name, 'otter.find');
      assert.ok(partly.confidence < certain.confidence);
      assert.ok(vague.confidence < certain.confidence);
    });

    it('is unknown where no intent shares a word with the query, even if names do', async () => {
      assert.deepEqual(await preview('sloth'), { name: 'unknown', confidence: 0 });
    });
  });
});
