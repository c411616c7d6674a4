/** The bounds of a search, and the vocabulary that they rest on. */
import assert from 'node:assert/strict';
import { Client } from 'pg';
import { createTestAccounts } from '../support/accounts.ts';
import { createTestDatabase, type TestDatabase } from '../support/stack.ts';

describe('the search for agents', () => {
  let database: TestDatabase;
  let sql: Client;

  before(async () => {
    database = await createTestDatabase();
    await createTestAccounts(database.url, 1, 0);
    sql = new Client({ connectionString: database.url });
    await sql.connect();
    await sql.query(`
      insert into farebox.agents (id, account_id, name, protocol, endpoint, name_words, search)
      select 'agent-' || n, (select id from farebox.accounts), 'x', 'mcp', 'https://example.com', 'x',
        setweight(to_tsvector('english', case when n % 10 = 0 then 'otter desk' else 'desk' end), 'A') ||
        to_tsvector('english', 'otters and fish')
      from generate_series(1, 5000) n
    `);
  });
  after(async () => {
    await sql.end();
    await database.drop();
  });

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
  const vocabulary = async () =>
    Object.fromEntries(
      (
        await sql.query<{ word: string; agents: number }>(
          'select word, agents from farebox.agent_words where agents > 0 order by word',
        )
      ).rows.map(({ word, agents }) => [word, agents]),
    );

  it('gives no more candidates than asked for, however many fit, those by name first', async () => {
    const found = await candidates(['otter', 'fish'], 300);
    assert.equal(found.length, 300);
    assert.ok(found.every((id) => Number(id.slice('agent-'.length)) % 10 === 0));
  });

  it('goes on to the next query where the one before fits too few', async () => {
    assert.equal((await candidates(['otter & walrus'], 300)).length, 0);
    assert.equal((await candidates(['otter & walrus', 'fish'], 300)).length, 300);
  });

  it('reads agents and words by their indexes, and not one after the other', async () => {
    const before = await sequentialScans();
    for (const query of ['otter', 'fish', 'otter & fish', 'nothing']) await candidates([query], 10);
    assert.equal(await sequentialScans(), before);
  });

  it('counts for each word the agents that have it, as they come, change and go', async () => {
    const all = { desk: 5000, fish: 5000, otter: 5000 };
    assert.deepEqual(await vocabulary(), all);
    await sql.query(`
      update farebox.agents set search = to_tsvector('english', 'fishing fish walrus')
      where id in ('agent-1', 'agent-2')
    `);
    assert.deepEqual(await vocabulary(), { desk: 4998, fish: 5000, otter: 4998, walrus: 2 });
    await sql.query("delete from farebox.agents where id in ('agent-1', 'agent-3')");
    assert.deepEqual(await vocabulary(), { desk: 4997, fish: 4998, otter: 4997, walrus: 1 });
    await sql.query("delete from farebox.agents where id = 'nothing'");
    assert.deepEqual(await vocabulary(), { desk: 4997, fish: 4998, otter: 4997, walrus: 1 });
  });
});
