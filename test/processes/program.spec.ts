/** The program that the image runs, where it could differ from its source. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { startTestApiProcesses, type TestApi } from '../support/api.ts';
import type { ServerProcess } from '../support/stack.ts';

describe('the built program', () => {
  let api: TestApi<ServerProcess>;

  before(async () => {
    api = await startTestApiProcesses();
  });
  after(() => api?.stop());

  it('logs the class of an error by its name, although other packages have a class of that name', async () => {
    const { consumerKey } = await api.createAccount(1);
    await api.sql.query('alter table farebox.consumers rename to elsewhere');
    const { status } = await fetch(`${api.url}/v1/balance`, {
      headers: { authorization: `Bearer ${consumerKey}` },
    });
    assert.equal(status, 500);
    const lines = (await readFile(api.logFile, 'utf8')).trim().split('\n');
    const types = lines
      .map((line) => JSON.parse(line) as { err?: { type: string; message: string } })
      .filter(({ err }) => err?.message.includes('farebox.consumers'))
      .map(({ err }) => err?.type);
    assert.ok(types.length > 0);
    assert.deepEqual([...new Set(types)], ['DatabaseError']);
  });
});
