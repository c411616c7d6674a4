/** The limits of a search, and the vocabulary behind them. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import { findWordMatches } from '../../../src/store/agents/agent-search.ts';
import { createTestAccount } from '../../support/accounts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/stack.ts';

describe('the search for agents', () => {
  let database: TestDatabase;
  let pool: Database;
  let sql: Client;

  before(async () => {
    database = await createTestDatabase();
    await createTestAccount(database.url, 0);
    sql = new Client({ connectionString: database.url });
    await sql.connect();
    pool = await createDatabase(database.url, { maxPoolSize: 1, onError: () => {} });
    await insert(1, 5_000, 'otter', 'otters and fish');
  });
  after(async () => {
    await pool.end();
    await sql.end();
    await database.drop();
  });

  /** Agents `<name>-<from>` to `<name>-<to>`; every tenth has its name in the name, all have the text. */
  const insert = (from: number, to: number, name: string, text = name) =>
    sql.query(
      `insert into farebox.agents (id, account_id, name, protocol, endpoint, name_words, search)
       select $1 || '-' || n, (select id from farebox.accounts), 'x', 'mcp', 'https://example.com', 'x',
         setweight(to_tsvector('english', case when n % 10 = 0 then $1 else 'desk' end), 'A') ||
         to_tsvector('english', $2)
       from generate_series($3::int, $4::int) n`,
      [name, text, from, to],
    );
  const candidates = async (queries: readonly string[], agentsMax: number) =>
    (
      await sql.query<{ id: string }>(
        'select id from farebox.find_agent_candidates($1::tsquery[], $2)',
        [queries, agentsMax],
      )
    ).rows.map(({ id }) => id);
  const sequentialScans = async () => {
    await sql.query('select pg_stat_force_next_flush()');
    const { rows } = await sql.query<{ seq_scan: string }>(
      "select seq_scan from pg_stat_user_tables where schemaname = 'farebox' and relname = 'agents'",
    );
    return rows[0]?.seq_scan;
  };
  const countOf = async (word: string) => {
    const { rows } = await sql.query<{ agents: number }>(
      'select agents from farebox.agent_words where word = $1',
      [word],
    );
    return rows[0]?.agents ?? 0;
  };

  it('returns at most the requested number of candidates, those by name first', async () => {
    const found = await candidates(['otter', 'fish'], 300);
    assert.equal(found.length, 300);
    assert.ok(found.every((id) => Number(id.slice('otter-'.length)) % 10 === 0));
  });

  it('continues with the next query when one has too few results', async () => {
    assert.equal((await candidates(['otter & walrus'], 300)).length, 0);
    assert.equal((await candidates(['otter & walrus', 'fish'], 300)).length, 300);
  });

  it('reads agents and words by their indexes, without a sequential scan', async () => {
    const before = await sequentialScans();
    for (const query of ['otter', 'fish', 'otter & fish', 'nothing']) await candidates([query], 10);
    assert.equal(await sequentialScans(), before);
  });

  it('counts the agents that have a word, as they are added, changed and removed', async () => {
    await insert(1, 90, 'walrus');
    assert.equal(await countOf('walrus'), 90);
    await sql.query(`
      update farebox.agents set search = to_tsvector('english', 'fishing seals')
      where id in ('walrus-1', 'walrus-2')
    `);
    assert.deepEqual([await countOf('walrus'), await countOf('seal')], [88, 2]);
    await sql.query("delete from farebox.agents where id in ('walrus-1', 'walrus-3')");
    assert.deepEqual([await countOf('walrus'), await countOf('seal')], [87, 1]);
    await sql.query("delete from farebox.agents where id = 'nothing'");
    assert.deepEqual([await countOf('walrus'), await countOf('seal')], [87, 1]);
    await sql.query("delete from farebox.agents where id = 'walrus-2'");
    assert.equal(await countOf('seal'), 0);
    await insert(1, 3, 'seal');
    assert.equal(await countOf('seal'), 3);
  });

  it('estimates the count of a common word, for any number of agents', async () => {
    for (let n = 1; n <= 2_000; n += 1) await insert(n, n, 'seagull');
    const counted = await countOf('seagul');
    assert.ok(counted > 1_000 && counted < 3_500, `${counted} of 2000`);
  });

  it('knows a word that agents have although its estimated count has fallen to 0', async () => {
    await insert(1, 10, 'puffin');
    // As it may after hundreds of agents had the word and lost it.
    await sql.query("update farebox.agent_words set agents = 0 where word = 'puffin'");
    assert.deepEqual(await findWordMatches(pool, 'puffins'), [
      { asked: 'puffin', word: 'puffin', agents: 0, likeness: 1 },
    ]);
    await sql.query("delete from farebox.agents where id like 'puffin-%'");
    assert.deepEqual(await findWordMatches(pool, 'puffins'), [
      { asked: 'puffin', word: null, agents: 0, likeness: 0 },
    ]);
  });
});
