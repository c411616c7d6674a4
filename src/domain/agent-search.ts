/**
 * The logic of the agent search: which known words a query may mean, the weight of each, and the index queries, from
 * strict to loose, that find the few candidates for ranking.
 */

/** A word that agents use and a word of the query may mean. Both are stems. */
export interface WordMatch {
  readonly asked: string;
  /** Null: no agent uses a word like it. */
  readonly word: string | null;
  /** How many agents use it. */
  readonly agents: number;
  /** 1 for the same word, less for a different spelling. */
  readonly likeness: number;
}

/** A word of the query with all its possible meanings. */
export interface Term {
  readonly words: readonly { readonly word: string; readonly likeness: number }[];
  readonly agents: number;
  /**
   * The word's share of the score; the shares of a query add up to 1. The fewer agents use a word, the higher its
   * share.
   */
  readonly weight: number;
}

export function termsOf(matches: readonly WordMatch[]): Term[] {
  const asked = Map.groupBy(matches, (match) => match.asked);
  const terms = [...asked.values()].map((meant) => {
    const words = meant.flatMap(({ word, likeness }) =>
      word === null ? [] : [{ word, likeness }],
    );
    const agents = meant.reduce((sum, word) => sum + word.agents, 0);
    return { words, agents, rarity: 1 / (1 + Math.log(Math.max(1, agents))) };
  });
  const total = terms.reduce((sum, { rarity }) => sum + rarity, 0);
  return terms.map(({ words, agents, rarity }) => ({ words, agents, weight: rarity / total }));
}

/** Candidates are found by this many words, the rarest ones. The other words only affect the ranking. */
const SEARCHED_MAX = 6;
/**
 * The most index entries that a query with `or` may read, which takes some milliseconds. It leaves out the most common
 * words first. A query with `and` reads about as many entries as its rarest word has.
 */
const ENTRIES_MAX = 15_000;

/**
 * Queries for all words, all but one, any two and any one, in tsquery syntax. Empty when no agent uses any of the
 * words.
 */
export function queriesOf(terms: readonly Term[]): string[] {
  const rarestFirst = terms
    .filter(({ words }) => words.length > 0)
    .toSorted((a, b) => a.agents - b.agents)
    .slice(0, SEARCHED_MAX);
  if (rarestFirst.length === 0) return [];
  let entries = 0;
  const rare = rarestFirst.filter(
    ({ agents }, index) => (entries += agents) <= ENTRIES_MAX || index === 0,
  );
  const counts = new Set([rare.length - 1, Math.min(2, rare.length), 1]);
  const loose = [...counts]
    .filter((count) => count > 0 && count < rarestFirst.length)
    .map((count) => anyOf(choices(rare, count).map(allOf)));
  return [allOf(rarestFirst), ...loose];
}

/** Every choice of `count` items. */
function choices<T>(items: readonly T[], count: number): T[][] {
  if (count === 0) return [[]];
  return items.flatMap((item, index) =>
    choices(items.slice(index + 1), count - 1).map((others) => [item, ...others]),
  );
}

function allOf(terms: readonly Term[]): string {
  return terms.map(({ words }) => anyOf(words.map(({ word }) => `'${word}'`))).join(' & ');
}

function anyOf(queries: readonly string[]): string {
  return `(${queries.join(' | ')})`;
}

/** An intent or capability as an agent registered it, with the stems of its words. */
export interface Offer {
  readonly name: string;
  readonly stems: readonly string[];
}

export interface Intent {
  readonly name: string;
  /** 0 to 1. */
  readonly confidence: number;
}

export const UNKNOWN_INTENT: Intent = { name: 'unknown', confidence: 0 };

/**
 * The offer with most of the query's words and few other words. The confidence is the geometric mean of two shares: how
 * much of the query the offer has, and how much of the offer the query has.
 */
export function intentOf(terms: readonly Term[], offers: readonly Offer[]): Intent {
  let best = UNKNOWN_INTENT;
  for (const { name, stems } of offers) {
    const met = new Map<string, number>();
    let share = 0;
    for (const { words, weight } of terms) {
      const meant = words.filter(({ word }) => stems.includes(word));
      share += weight * Math.max(0, ...meant.map(({ likeness }) => likeness));
      for (const { word, likeness } of meant) met.set(word, Math.max(likeness, met.get(word) ?? 0));
    }
    const fit = [...met.values()].reduce((sum, likeness) => sum + likeness, 0) / stems.length;
    const confidence = Math.sqrt(share * fit);
    if (confidence > best.confidence) best = { name, confidence };
  }
  return best;
}
