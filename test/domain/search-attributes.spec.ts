/** Search attributes: few enough for every kind of server, and all of them in the guide. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { SEARCH_ATTRIBUTES } from '../../src/domain/search-attributes.ts';

describe('search attributes', () => {
  it('fit into the namespace of a server on an SQL database', () => {
    const counts = Map.groupBy(Object.values(SEARCH_ATTRIBUTES), (type) => type);
    assert.ok((counts.get('Keyword')?.length ?? 0) <= 10);
    assert.ok((counts.get('Double')?.length ?? 0) <= 3);
    assert.ok((counts.get('Bool')?.length ?? 0) <= 3);
  });

  it('are all in the command that the guide to Temporal Cloud gives', async () => {
    const guide = await readFile('docs/temporal-cloud.md', 'utf8');
    const given = [...guide.matchAll(/--search-attribute "(\w+)=(\w+)"/g)];
    assert.deepEqual(
      Object.fromEntries(given.map(([, name, type]) => [name, type])),
      SEARCH_ATTRIBUTES,
    );
  });
});
