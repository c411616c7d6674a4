/** What a developer's callers were refused, as the developer reads it afterwards. */
import assert from 'node:assert/strict';
import { HOUR_MS } from '../../../src/domain/durations.ts';
import { RefusalsReply } from '../../../src/schemas/refusals.ts';
import { RefusalRecorder } from '../../../src/http/refusals/refusal-recorder.ts';
import type { Database } from '../../../src/store/database.ts';
import { listRefusals } from '../../../src/store/refusals/refusals.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { bodyOf, call, charge, type Answer } from '../../support/http.ts';
import { keptPool } from '../../support/kept-pools.ts';
import { until } from '../../support/stack.ts';

const rethrow = (error: unknown) => {
  throw error;
};

const requestIdOf = ({ headers }: Answer) => headers.get('x-request-id') ?? '';

describe('refused requests of a developer', () => {
  let api: TestApi;
  let database: Database;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    database = await keptPool(api.databaseUrl);
  });
  beforeEach(async () => {
    account = await api.createAccount(1);
  });
  after(() => api?.stop());

  const list = async () => {
    const answer = await call(api, 'GET', '/v1/refusals', { key: account.developerKey });
    return bodyOf(answer, 200, RefusalsReply).refusals;
  };
  const developerUuid = async () => {
    const { rows } = await api.sql.query<{ id: string }>(
      'select developer_id as id from farebox.accounts where email = $1',
      [account.email],
    );
    return rows[0]?.id ?? '';
  };

  it('are counted by code and tool, with the ids of the last requests', async () => {
    const refused: Answer[] = [];
    for (let n = 0; n < 7; n += 1) {
      refused.push(await charge(api, account, { tool: 'search', amount: 5 }));
    }
    const badKey = await charge(api, account, { tool: 'search', apiKey: 'fare_ck_live_none' });
    const unknown = await charge(api, account, { tool: 'never seen', amount: undefined });
    await charge(api, account);
    const key = account.developerKey;
    const malformed = { charges: [{ tool: '\u0000'.repeat(50_000) }, 7] };
    await call(api, 'POST', '/v1/charges/batch', { key, body: malformed });
    const found = await until(async () => {
      const all = await list();
      return all.length === 4 ? all : undefined;
    });
    const of = (code: string) => found.find((each) => each.code === code);
    const { count, tool, requestIds } = of('insufficient_balance') ?? {};
    assert.deepEqual([tool, count], ['search', 7]);
    assert.deepEqual(requestIds, refused.slice(-5).toReversed().map(requestIdOf));
    assert.deepEqual(of('invalid_api_key')?.requestIds, [requestIdOf(badKey)]);
    assert.deepEqual(of('unknown_tool')?.requestIds, [requestIdOf(unknown)]);
    assert.equal(of('unknown_tool')?.tool, null);
    assert.deepEqual([of('invalid_request')?.tool, of('invalid_request')?.count], [null, 2]);
  });

  it('add up over processes and hours, and are seen by their developer alone', async () => {
    const developerId = await developerUuid();
    const now = Date.now();
    const recorders = [0, 1].map(() => new RefusalRecorder(database, { nowMs: Date.now }, rethrow));
    for (const [index, recorder] of recorders.entries()) {
      for (const [ago, requestId] of [
        [2 * HOUR_MS, `req_old${index}`],
        [0, `req_new${index}`],
      ] as const) {
        recorder.add({ developerId, code: 'tool_archived', tool: 'x', requestId }, now - ago);
      }
      await recorder.stop();
    }
    const [found] = await list();
    assert.deepEqual([found?.count, found?.requestIds], [4, ['req_new1', 'req_new0']]);
    assert.equal(Date.parse(found?.lastAt ?? ''), now);
    const recent = await listRefusals(database, developerId, { hours: 1, limit: 10 });
    assert.equal(recent[0]?.count, 2);
    account = await api.createAccount(0);
    assert.deepEqual(await list(), []);
  });

  it('count for the whole time that is asked for, though they are stored by the hour', async () => {
    const developerId = await developerUuid();
    const recorder = new RefusalRecorder(database, { nowMs: Date.now }, rethrow);
    // The last moment of the hour before this one: it is less than an hour ago.
    const { rows } = await api.sql.query<{ at: Date }>(`select date_trunc('hour', now()) as at`);
    const lastHour = (rows[0]?.at.getTime() ?? Number.NaN) - 1;
    recorder.add({ developerId, code: 'tool_archived', tool: 'x', requestId: 'req_1' }, lastHour);
    await recorder.stop();
    const found = await listRefusals(database, developerId, { hours: 1, limit: 10 });
    assert.equal(found[0]?.count, 1);
  });

  it('take little room, no matter how many tools are named, and are deleted after 30 days', async () => {
    const developerId = await developerUuid();
    const recorder = new RefusalRecorder(database, { nowMs: Date.now }, rethrow);
    const old = Date.now() - 31 * 24 * HOUR_MS;
    recorder.add({ developerId, code: 'unknown_tool', tool: '', requestId: 'req_1' }, old);
    await recorder.write();
    for (let n = 0; n < 500; n += 1) {
      recorder.add({ developerId, code: 'tool_archived', tool: `tool ${n}`, requestId: 'req_2' });
    }
    await recorder.stop();
    const rows = await listRefusals(database, developerId, { hours: 10_000, limit: 1_000 });
    assert.equal(rows.length, 51);
    assert.deepEqual([rows[0]?.tool, rows[0]?.count], ['(other)', 450]);
  });

  it('never make a request wait for the database', async () => {
    await api.sql.query('begin');
    await api.sql.query('lock table farebox.refusals');
    try {
      const refused = Array.from({ length: 20 }, () => charge(api, account, { amount: 5 }));
      for (const { status } of await Promise.all(refused)) assert.equal(status, 402);
      assert.equal((await charge(api, account)).status, 201);
    } finally {
      await api.sql.query('rollback');
    }
    await until(async () => (await list())[0]?.count === 20);
  });
});
