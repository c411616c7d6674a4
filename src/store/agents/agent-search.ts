/**
 * The SQL of the agent search (specification section 4.4). Each statement reads a bounded number of rows, regardless of
 * the number of agents. domain/agent-search.ts decides which words they look for. The statements are prepared: planning
 * them each time would take a quarter of the search's time.
 */
import { Type } from 'typebox';
import { queriesOf, type Offer, type Term, type WordMatch } from '../../domain/agent-search.ts';
import { searchWords, swappedSpellings } from '../../domain/search-words.ts';
import { nullable, row, sql, type Connection } from '../database.ts';

/** The most words of a query that are looked up. */
const WORDS_MAX = 32;
/** The most unknown words of a query that are compared with the words that agents use. */
const COMPARED_MAX = 6;
/** The most words that an unknown word may mean. */
const ALIKE_MAX = 4;
/** The likeness of two words that differ by swapped letters. By shared trigrams they would look less alike. */
const SWAPPED_LIKENESS = 0.9;

const wordMatchRow = row(
  Type.Object({
    asked: Type.String(),
    word: nullable(Type.String()),
    agents: Type.Integer(),
    likeness: Type.Number(),
  }),
);

/**
 * The meanings of a query's words, without stop words. A word that agents use means itself. Any other word means the
 * similar ones, unless it has digits or is so short that many words are similar. The count of a word that was
 * common may be 0 while some agents still have it (count_agent_words.sql), so the agents themselves are asked
 * then.
 */
export async function findWordMatches(
  connection: Connection,
  query: string,
): Promise<readonly WordMatch[]> {
  const words = [...new Set(searchWords(query).split(' '))].slice(0, WORDS_MAX);
  const swapped = words.flatMap((word) =>
    swappedSpellings(word).map((meant) => [word, meant] as const),
  );
  const spelledColumn = sql.array(
    swapped.map(([spelled]) => spelled),
    'text',
  );
  const meantColumn = sql.array(
    swapped.map(([, meant]) => meant),
    'text',
  );
  return connection.any(sql.prepared('find_word_matches', wordMatchRow)`
    with asked as materialized (
      select stem, array_agg(word) as words, min(ord) as ord
      from unnest(${sql.array(words, 'text')}) with ordinality as q(word, ord)
        cross join lateral unnest(tsvector_to_array(to_tsvector('english', word))) as stem
      group by stem
    ),
    used as materialized (
      select stem, words, ord, v.word, v.agents
      from asked left join farebox.agent_words v on v.word = stem and (
        v.agents > 0
        or exists (select from farebox.find_agent_candidates(array[quote_literal(stem)::tsquery], 1))
      )
    ),
    unused as materialized (
      select *, stem ~ '^[^0-9]{4,}$' and row_number() over (order by ord) <= ${COMPARED_MAX}
        as is_compared
      from used where word is null
    )
    select stem as asked, word, agents, 1::float8 as likeness from used where word is not null
    union all
    select u.stem, n.word, coalesce(n.agents, 0), coalesce(n.likeness, 0)::float8
    from unused u left join lateral (
      select word, agents, max(likeness) as likeness
      from (
        (select v.word, v.agents, ${SWAPPED_LIKENESS} as likeness
        from unnest(${spelledColumn}, ${meantColumn}) as s(spelled, meant)
          join farebox.agent_words v
            on v.word = any (tsvector_to_array(to_tsvector('english', meant)))
        where spelled = any (u.words) and u.is_compared and v.agents > 0)
        union all
        (select v.word, v.agents, similarity(v.word, u.stem) * ${SWAPPED_LIKENESS}
        from farebox.agent_words v
        where v.word % u.stem and v.word !~ '[0-9]' and u.is_compared and v.agents > 0
        order by similarity(v.word, u.stem) desc, v.word limit ${ALIKE_MAX})
      ) alike
      group by word, agents order by likeness desc, word limit ${ALIKE_MAX}
    ) n on true
  `);
}

/** How many candidates are ranked: enough for the best to be among them, few enough for milliseconds. */
const CANDIDATES_MAX = 300;
/** Weights by field, in the order of ts_rank: D description, C protocol, B intents and capabilities, A name. */
const FIELD_WEIGHTS = '{0.4,0.5,0.8,1}';
/** ts_rank gives a word that occurs once 6/pi^2 of its weight, and more if it occurs more often. */
const ONCE = Math.PI ** 2 / 6;
/** The most that an agent gains over another one with the same words when its name has fewer other words. */
const NAME_SHARE = 0.15;

const rankedRow = row(
  Type.Object({
    id: Type.String(),
    protocol: Type.String(),
    score: Type.Number(),
  }),
);

/** The best matches, best first. Scores are from 0 to 1. */
export async function rankAgents(
  connection: Connection,
  terms: readonly Term[],
  agentsMax: number,
) {
  const queries = queriesOf(terms);
  if (queries.length === 0) return [];
  const words = terms.flatMap((term, index) =>
    term.words.map(({ word, likeness }) => ({ index, word, gain: likeness * term.weight })),
  );
  const termColumn = sql.array(
    words.map(({ index }) => index),
    'int4',
  );
  const wordColumn = sql.array(
    words.map(({ word }) => word),
    'text',
  );
  const gainColumn = sql.array(
    words.map(({ gain }) => gain),
    'float8',
  );
  const name = terms.map(({ words: [first] }) => first?.word ?? '').join(' ');
  return connection.any(sql.prepared('rank_agents', rankedRow)`
    with wanted as materialized (
      select term, quote_literal(word)::tsquery as word, gain
      from unnest(${termColumn}, ${wordColumn}, ${gainColumn}) as w(term, word, gain)
    ),
    candidates as materialized (
      -- Postgres stores a long vector compressed, out of line; the concatenation decompresses it once.
      select distinct on (id) id, protocol, name_words, search || '' as search
      from farebox.find_agent_candidates(${sql.array(queries, 'tsquery')}, ${CANDIDATES_MAX})
    ),
    gains as (
      select id, term,
        max(gain * least(1, ts_rank(${FIELD_WEIGHTS}, search, word) * ${ONCE}::float8)) as gain
      from candidates join wanted on search @@ word
      group by id, term
    )
    select id, protocol,
      least(1, sum(gain) * (1 - ${NAME_SHARE}::float8 * (1 - similarity(name_words, ${name}))))::float8
        as score
    from gains join candidates using (id)
    group by id, protocol, name_words order by score desc, id limit ${agentsMax}
  `);
}

/** The most distinct intents and capabilities that one search looks at. */
const OFFERS_MAX = 200;

const nameRow = row(Type.Object({ name: Type.String() }));
const offerRow = row(Type.Object({ name: Type.String(), stems: Type.Array(Type.String()) }));

/** The intents and capabilities of these agents, in the order of the given ids, intents first. */
export async function findOffers(
  connection: Connection,
  agentIds: readonly string[],
): Promise<readonly Offer[]> {
  const names = await connection.anyFirst(sql.prepared('find_offer_names', nameRow)`
    select o.name
    from unnest(${sql.array(agentIds, 'text')}) with ordinality as r(id, rank)
      join farebox.agents a on a.id = r.id
      cross join lateral unnest(a.intents || a.capabilities) with ordinality as o(name, place)
    group by o.name order by min(rank), min(place) limit ${OFFERS_MAX}
  `);
  return connection.any(sql.prepared('find_offers', offerRow)`
    select name, tsvector_to_array(to_tsvector('english', words)) as stems
    from unnest(${sql.array(names, 'text')}, ${sql.array(names.map(searchWords), 'text')})
      with ordinality as o(name, words, place)
    order by place
  `);
}
