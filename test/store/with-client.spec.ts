/** Connections outside of the pools, on a line that falls silent. */
import assert from 'node:assert/strict';
import { withClient } from '../../src/store/with-client.ts';
import { startFaultyLine, type FaultyLine } from '../support/faulty-line.ts';
import { createTestDatabase, type TestDatabase } from '../support/stack.ts';

describe('a connection of its own', () => {
  let database: TestDatabase;
  let line: FaultyLine;
  let url: string;

  before(async () => {
    database = await createTestDatabase();
  });
  beforeEach(async () => {
    const lined = new URL(database.url);
    line = await startFaultyLine({ host: lined.hostname, port: Number(lined.port) });
    lined.port = String(line.port);
    url = lined.href;
  });
  afterEach(() => line?.stop());
  after(() => database?.drop());

  it('fails a statement that gets no answer in time', async () => {
    const asked = withClient(url, { statementMsMax: 200 }, async (client) => {
      line.damage({ kind: 'silent' });
      await client.query('select 1');
    });
    await assert.rejects(asked, /Query read timeout/);
  });

  it('returns what the work returned, though the server does not let the connection end', async () => {
    const worked = await withClient(url, { statementMsMax: 5_000 }, async (client) => {
      const { rows } = await client.query<{ n: number }>('select 1 as n');
      line.damage({ kind: 'silent' });
      return rows;
    });
    assert.deepEqual(worked, [{ n: 1 }]);
  });
});
