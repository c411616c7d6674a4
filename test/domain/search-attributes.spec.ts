/** Search attributes: few enough for every kind of server. */
import assert from 'node:assert/strict';
import { SEARCH_ATTRIBUTES } from '../../src/domain/search-attributes.ts';

describe('search attributes', () => {
  it('fit into the namespace of a server on an SQL database', () => {
    const counts = Map.groupBy(Object.values(SEARCH_ATTRIBUTES), (type) => type);
    assert.ok((counts.get('Keyword')?.length ?? 0) <= 10);
    assert.ok((counts.get('Double')?.length ?? 0) <= 3);
    assert.ok((counts.get('Bool')?.length ?? 0) <= 3);
  });
});
