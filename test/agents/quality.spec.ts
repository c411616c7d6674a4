/** Measures over HTTP how well agents are found in a labeled set. */
import assert from 'node:assert/strict';
import { IntentReply, ResolveReply } from '../../src/schemas/agents.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { bodyOf, call } from '../support/http.ts';
import { labeledAgents, labeledQueries, type LabeledQuery } from './labeled.ts';

interface Found extends LabeledQuery {
  /** Rank score of the first right answer among five; 0 without one. */
  readonly rank: number;
}

describe('finding agents', () => {
  const agents = labeledAgents();
  const queries = labeledQueries();
  let api: TestApi;
  let headers: Record<string, string>;

  before(async () => {
    api = await startTestApi();
    headers = { 'x-service-key': (await api.createAccount(0)).legacyKey };
    for (const body of agents) {
      assert.equal((await call(api, 'POST', '/register', { headers, body })).status, 201, body.id);
    }
  });
  after(() => api.stop());

  const find = async (labeled: LabeledQuery): Promise<Found> => {
    const body = { query: labeled.query, topK: 5 };
    const answer = await call(api, 'POST', '/resolve', { headers, body });
    const { results } = bodyOf(answer, 200, ResolveReply);
    const rank = results.findIndex(({ agentId }) => labeled.right.includes(agentId)) + 1;
    return { ...labeled, rank };
  };

  it('is measured with enough queries of each kind over enough agents, all with labels', () => {
    assert.ok(agents.length >= 60 && queries.length >= 100);
    const counts = Map.groupBy(queries, ({ kind }) => kind);
    for (const kind of ['plain', 'typo', 'form', 'order', 'sentence', 'identifier']) {
      assert.ok((counts.get(kind)?.length ?? 0) >= 10, kind);
    }
    const ids = new Set(agents.map(({ id }) => id));
    assert.deepEqual(
      queries.flatMap(({ right }) => right).filter((id) => !ids.has(id)),
      [],
    );
  });

  it('lists a right agent among the first five for nine of ten queries of every kind', async () => {
    const found: Found[] = [];
    for (const labeled of queries) found.push(await find(labeled));
    for (const [kind, some] of [
      ...Map.groupBy(found, ({ kind }) => kind),
      ['all', found] as const,
    ]) {
      const { recall, reciprocalRank } = measure(some);
      process.stdout.write(
        `      ${kind}: ${some.length} queries, recall at 5 ${recall.toFixed(3)}, ` +
          `mean reciprocal rank ${reciprocalRank.toFixed(3)}\n`,
      );
      const missed = some.filter(({ rank }) => rank === 0).map(({ query }) => query);
      assert.ok(recall >= 0.9, `missed: ${missed.join('; ')}`);
    }
    assert.ok(measure(found).reciprocalRank >= 0.9);
  });

  for (const [query, intent] of [
    ['weather forecast for Paris', 'weather.forecast'],
    ['sned an email', 'send_email'],
    ['text to speech', 'text_to_speech'],
    ['converting currencies', 'convert.currency'],
    ['reveiw my code', 'code.review'],
  ] as const) {
    it(`takes "${query}" for ${intent}`, async () => {
      const answer = await call(api, 'POST', '/intent/preview', { headers, body: { query } });
      const found = bodyOf(answer, 200, IntentReply).intent;
      assert.deepEqual(wordsOf(found.name), wordsOf(intent));
      assert.ok(found.confidence >= 0.5, `confidence ${found.confidence}`);
    });
  }

  for (const query of ['quantum chromodynamics', 'xyzzy', 'Wo ist der Bahnhof?', 'ottters']) {
    it(`is not confident about "${query}"`, async () => {
      const answer = await call(api, 'POST', '/intent/preview', { headers, body: { query } });
      assert.ok(bodyOf(answer, 200, IntentReply).intent.confidence <= 0.35);
    });
  }
});

/** In any order and style: `text_to_speech` is as good as `speech.text.to`. */
function wordsOf(name: string): string[] {
  return name.split(/[._]/).toSorted((a, b) => a.localeCompare(b));
}

function measure(found: readonly Found[]): { recall: number; reciprocalRank: number } {
  return {
    recall: found.filter(({ rank }) => rank > 0).length / found.length,
    reciprocalRank:
      found.reduce((sum, { rank }) => sum + (rank > 0 ? 1 / rank : 0), 0) / found.length,
  };
}
