/** Each number in MASTER_SECRET means one secret, in every process that uses a database. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { startTestApi, type TestApi } from '../support/api.ts';
import { farebox, startApi, startWorker } from '../support/stack.ts';

const FIRST = 'first'.padEnd(32, '.');
const SECOND = 'second'.padEnd(32, '.');
const OTHER = 'other'.padEnd(32, '.');

describe('the master secrets of a database', () => {
  let api: TestApi;

  beforeEach(async () => {
    api = await startTestApi({ env: { MASTER_SECRET: FIRST } });
  });
  afterEach(() => api.stop());

  const env = (secrets: string) => ({ ...api.env, MASTER_SECRET: secrets, PORT: undefined });
  const start = async (secrets: string) => (await startApi({ env: env(secrets) })).stop();
  const numbers = async () => {
    const { rows } = await api.sql.query<{ number: number }>(
      'select number from farebox.master_secrets order by number',
    );
    return rows.map(({ number }) => number);
  };

  /** The newer number that the log says is missing. */
  const warned = async (list: string) => {
    const server = await startApi({ env: env(list) });
    await server.stop();
    const log = await readFile(server.logFile, 'utf8');
    return /started with secret number (\d+), which this process lacks/.exec(log)?.[1];
  };

  it('refuse an API process that has another secret with the same number', async () => {
    await start(FIRST);
    await start(`1:${FIRST}`);
    await assert.rejects(start(OTHER), {
      name: 'MasterSecretError',
      message: /^MASTER_SECRET: number 1 is not the secret .* A new secret needs a new number/,
    });
  });

  it('refuse a worker, and commands that derive signing secrets', async () => {
    const refused = /number 1 is not the secret/;
    await assert.rejects(startWorker({ env: env(OTHER) }), refused);
    const add = ['webhook', 'add', 'nobody@example.com', 'https://example.com'];
    await assert.rejects(farebox(add, { env: env(OTHER) }), refused);
    await assert.rejects(farebox(add, { env: env(FIRST) }), /Account nobody@example.com not found/);
  });

  it('can be rotated, and a removed one keeps its number', async () => {
    for (const list of [`1:${FIRST},2:${SECOND}`, `2:${SECOND},1:${FIRST}`]) await start(list);
    await start(`2:${SECOND},1-retired:${FIRST}`);
    await start(`2:${SECOND}`);
    await assert.rejects(start(`1:${OTHER},2:${SECOND}`), /number 1 is not the secret/);
    assert.deepEqual(await numbers(), [1, 2]);
  });

  it('make a process that lacks a newer one log a warning, and no other process', async () => {
    assert.equal(await warned(`1:${FIRST},2:${SECOND}`), undefined);
    assert.equal(await warned(FIRST), '2');
    assert.equal(await warned(`2:${SECOND}`), undefined);
  });

  it('are not recorded by a process that is refused', async () => {
    await assert.rejects(start(`1:${OTHER},2:${SECOND}`), /number 1 is not the secret/);
    assert.deepEqual(await numbers(), [1]);
  });

  it('are those of one process when two start at the same moment', async () => {
    const starts = await Promise.allSettled([
      start(`1:${FIRST},2:${SECOND},3:${OTHER}`),
      start(`3:${SECOND},2:${OTHER},1:${FIRST}`),
    ]);
    assert.deepEqual(starts.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected']);
  });
});
