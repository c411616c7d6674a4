/** Rows cached in memory: read once, dropped within a second of a change, and never trusted without polling. */
import assert from 'node:assert/strict';
import { FreshCache, type FreshCacheOptions } from '../../src/charging/fresh-cache.ts';
import { RecentChanges } from '../../src/charging/recent-changes.ts';
import type { Change } from '../../src/store/recent-changes.ts';
import { until } from '../support/stack.ts';

interface Row {
  readonly value: number;
}

function open(options: Partial<FreshCacheOptions<Row>> = {}) {
  const rows = new Map<string, Row>([
    ['a', { value: 1 }],
    ['b', { value: 2 }],
  ]);
  const reads: string[][] = [];
  const errors: unknown[] = [];
  const asked: (string | undefined)[] = [];
  let changed: Change[] = [];
  let outage: Error | undefined;
  const changes = new RecentChanges(
    async (since) => {
      asked.push(since);
      if (outage) throw outage;
      return { changes: changed, at: `answer ${asked.length}`, writers: [] };
    },
    (error) => errors.push(error),
  );
  const cache = new FreshCache<Row>({
    entriesMax: 10,
    load: async (keys) => {
      reads.push([...keys]);
      return new Map([...rows].filter(([key]) => keys.includes(key)));
    },
    changes,
    keyOf: ({ kind, name }) => (kind === 'key' ? name : undefined),
    ...options,
  });
  return {
    cache,
    changes,
    reads,
    errors,
    asked,
    change: (key: string, row: Row) => {
      rows.set(key, row);
      changed = [{ kind: 'key', owner: '', name: key }];
    },
    changeTool: (name: string) => {
      changed = [{ kind: 'tool', owner: '', name }];
    },
    insert: (key: string, row: Row) => rows.set(key, row),
    breakDown: (error: Error | undefined) => (outage = error),
    [Symbol.asyncDispose]: () => changes.stop(),
  };
}

describe('FreshCache', () => {
  it('keeps a row in memory once it was read', async () => {
    await using opened = open();
    const { cache, reads } = opened;
    await opened.changes.start();
    assert.equal(cache.peek('a'), undefined);
    assert.deepEqual(await cache.load('a'), { value: 1 });
    assert.deepEqual(cache.peek('a'), { value: 1 });
    assert.deepEqual(reads, [['a']]);
  });

  it('evicts the least recently used row when it is full', async () => {
    await using opened = open({ entriesMax: 3 });
    const { cache } = opened;
    opened.insert('c', { value: 3 });
    opened.insert('d', { value: 4 });
    await opened.changes.start();
    for (const key of ['a', 'b', 'c']) await cache.load(key);
    assert.ok(cache.peek('a'));
    await cache.load('d');
    const kept = ['a', 'b', 'c', 'd'].filter((key) => cache.peek(key));
    assert.deepEqual(kept, ['a', 'c', 'd']);
  });

  it('evicts rows when they take too many bytes, and has another version then', async () => {
    await using opened = open({ bytes: { max: 10, of: ({ value }) => value } });
    const { cache } = opened;
    opened.insert('c', { value: 7 });
    opened.insert('larger than all together', { value: 11 });
    await opened.changes.start();
    for (const key of ['a', 'b']) await cache.load(key);
    const { version } = cache;
    await cache.load('larger than all together');
    assert.equal(cache.version, version);
    await cache.load('c');
    assert.deepEqual(
      ['a', 'b', 'c', 'larger than all together'].filter((key) => cache.peek(key)),
      ['a', 'b', 'c'],
    );
    opened.insert('d', { value: 2 });
    await cache.load('d');
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].filter((key) => cache.peek(key)),
      ['c', 'd'],
    );
    assert.notEqual(cache.version, version);
  });

  it('reads no more rows in one query than it may, and the others in the next', async () => {
    await using opened = open({ loadedMax: 2 });
    const { cache, reads } = opened;
    await opened.changes.start();
    opened.insert('c', { value: 3 });
    const keys = ['a', 'b', 'c', 'none'];
    const found = await Promise.all(keys.map((key) => cache.load(key)));
    assert.deepEqual(
      found.map((row) => row?.value),
      [1, 2, 3, undefined],
    );
    assert.deepEqual(reads, [
      ['a', 'b'],
      ['c', 'none'],
    ]);
  });

  it('trusts nothing until it has begun to poll for changes', async () => {
    await using opened = open();
    await opened.cache.load('a');
    assert.equal(opened.cache.peek('a'), undefined);
  });

  it('reads all rows that one turn missed in one query', async () => {
    await using opened = open();
    const { cache, reads } = opened;
    await opened.changes.start();
    const keys = ['a', 'b', 'a', 'none'];
    const found = await Promise.all(keys.map((key) => cache.load(key)));
    assert.deepEqual(
      found.map((row) => row?.value),
      [1, 2, 1, undefined],
    );
    assert.deepEqual(reads, [['a', 'b', 'none']]);
  });

  it('does not cache absence: a new row is seen at once', async () => {
    await using opened = open();
    const { cache, insert } = opened;
    await opened.changes.start();
    assert.equal(await cache.load('new'), undefined);
    insert('new', { value: 9 });
    assert.deepEqual(await cache.load('new'), { value: 9 });
  });

  it('drops a row that changed elsewhere', async () => {
    await using opened = open();
    const { cache, change } = opened;
    await opened.changes.start();
    await cache.load('a');
    change('a', { value: 7 });
    await until(() => cache.peek('a')?.value !== 1, { intervalMs: 5 });
    assert.deepEqual(await cache.load('a'), { value: 7 });
  });

  it('keeps its rows when rows of another kind change', async () => {
    await using opened = open();
    const { cache, changeTool } = opened;
    await opened.changes.start();
    await cache.load('a');
    const { version } = cache;
    let answers = 0;
    opened.changes.onChange(() => (answers += 1));
    changeTool('a');
    await until(() => answers > 0, { intervalMs: 5 });
    assert.deepEqual(cache.peek('a'), { value: 1 });
    assert.equal(cache.version, version);
  });

  it('drops a row that it does not trust once the row is found to be gone', async () => {
    let row: Row | undefined = { value: 1 };
    await using opened = open({ load: async () => new Map(row && [['a', row]]) });
    const { cache, breakDown } = opened;
    await opened.changes.start();
    await cache.load('a');
    breakDown(new Error('away'));
    await until(() => cache.version === undefined, { intervalMs: 5 });
    row = undefined;
    assert.equal(await cache.load('a'), undefined);
    breakDown(undefined);
    await until(() => cache.version !== undefined, { intervalMs: 5 });
    assert.equal(cache.peek('a'), undefined);
  });

  it('drops at once a row that it is told to', async () => {
    await using opened = open();
    const { cache } = opened;
    await opened.changes.start();
    await cache.load('a');
    cache.forget('a');
    assert.equal(cache.peek('a'), undefined);
  });

  it('does not keep a row that it was told to drop while it was being read', async () => {
    const { promise: isRead, resolve: read } = Promise.withResolvers<void>();
    const { promise: mayArrive, resolve: arrive } = Promise.withResolvers<void>();
    await using opened = open({
      load: async () => {
        read();
        await mayArrive;
        return new Map([['a', { value: 1 }]]);
      },
    });
    const { cache } = opened;
    await opened.changes.start();
    const loading = cache.load('a');
    await isRead;
    cache.forget('a');
    arrive();
    await loading;
    assert.equal(cache.peek('a'), undefined);
  });

  it('has another version after a change, and none while it cannot be trusted', async () => {
    await using opened = open();
    const { cache, change, breakDown } = opened;
    assert.equal(cache.version, undefined);
    await opened.changes.start();
    const first = cache.version;
    assert.ok(first !== undefined);
    await cache.load('a');
    assert.equal(cache.version, first);
    // A row that is not in memory, because it was evicted, may be remembered elsewhere.
    change('b', { value: 7 });
    await until(() => cache.version !== first, { intervalMs: 5 });
    const second = cache.version;
    cache.forget('a');
    assert.notEqual(cache.version, second);
    breakDown(new Error('away'));
    await until(() => cache.version === undefined, { intervalMs: 5 });
  });

  it('stops trusting itself when it cannot poll, reads from the database, and recovers', async () => {
    await using opened = open();
    const { cache, breakDown, errors, change } = opened;
    await opened.changes.start();
    await cache.load('a');
    const outage = new Error('away');
    breakDown(outage);
    await until(() => cache.peek('a') === undefined, { intervalMs: 5 });
    assert.equal(errors[0], outage);
    change('a', { value: 7 });
    assert.deepEqual(await cache.load('a'), { value: 7 });
    breakDown(undefined);
    await until(async () => (await cache.load('b')) && cache.peek('b'));
  });

  it('asks what changed since the last answer, even after a long outage', async () => {
    await using opened = open();
    const { breakDown, asked } = opened;
    await opened.changes.start();
    breakDown(new Error('away'));
    await until(() => asked.length >= 4, { intervalMs: 5 });
    assert.deepEqual(new Set(asked), new Set([undefined, 'answer 1']));
    breakDown(undefined);
    await until(() => asked.at(-1) !== 'answer 1', { intervalMs: 5 });
  });

  it('fails the callers whose rows cannot be read, and reads again for the next', async () => {
    let outage: Error | undefined = new Error('away');
    await using opened = open({
      load: async () => {
        if (outage) throw outage;
        return new Map([['a', { value: 1 }]]);
      },
    });
    const { cache } = opened;
    await opened.changes.start();
    await assert.rejects(cache.load('a'), outage);
    outage = undefined;
    assert.deepEqual(await cache.load('a'), { value: 1 });
  });

  it('uses a row whose read took long once, and does not keep it', async () => {
    await using opened = open({
      load: async () => {
        const late = performance.now() + 510;
        await until(() => performance.now() > late);
        return new Map([['a', { value: 1 }]]);
      },
    });
    const { cache } = opened;
    await opened.changes.start();
    assert.deepEqual(await cache.load('a'), { value: 1 });
    assert.equal(cache.peek('a'), undefined);
  });

  it('never keeps more rows than its limit', async () => {
    await using opened = open({ entriesMax: 1 });
    const { cache } = opened;
    await opened.changes.start();
    await cache.load('a');
    await cache.load('b');
    assert.equal(cache.peek('a'), undefined);
    assert.deepEqual(cache.peek('b'), { value: 2 });
  });
});
