/**
 * What agents received and returned moves out of the ledger with its month. The remaining row still proves
 * receipts, answers retries, and is shown without a result.
 */
import assert from 'node:assert/strict';
import { uuidFloor, uuidOf } from '../../../src/domain/ids.ts';
import { AgentReply } from '../../../src/schemas/agents.ts';
import { GrantReply } from '../../../src/schemas/grants.ts';
import { InvocationReceiptReply, InvocationReply } from '../../../src/schemas/invocations.ts';
import { VerifyReply } from '../../../src/schemas/receipts.ts';
import { archiveInvocations } from '../../../src/store/agents/archive-invocations.ts';
import {
  beginAttempt,
  beginInvocation,
  failInvocation,
  recordResult,
} from '../../../src/store/agents/invocations.ts';
import { examineLedger } from '../../../src/store/doctor/ledger-checks.ts';
import { ensureChargePartitions } from '../../../src/store/charges/partitions.ts';
import { createDatabase, type Database } from '../../../src/store/database.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { bodyOf, call, type Answer } from '../../support/http.ts';
import { farebox } from '../../support/stack.ts';

const NOW = new Date();
const monthAt = (ahead: number): number =>
  Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() + ahead);
const nameAt = (ahead: number): string => new Date(monthAt(ahead)).toISOString().slice(0, 7);
const tableAt = (ahead: number): string =>
  `farebox_archive.invocations_${nameAt(ahead).replace('-', '_')}`;
const OLD = -6;
const ALONE = -8;

describe('what agents received and returned long ago', () => {
  let api: TestApi;
  let database: Database;
  let account: TestAccount;
  let grantId: string;

  before(async () => {
    api = await startTestApi();
    database = await createDatabase(api.databaseUrl, { maxPoolSize: 2, onError: () => {} });
    account = await api.createAccount(0);
    const agent = { id: 'target', name: 'target', protocol: 'http' };
    const endpoint = 'https://agents.example.com';
    bodyOf(await post('/register', { ...agent, endpoint }), 201, AgentReply);
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const asked = { callerId: 'alice', targetAgentId: 'target', type: 'session', expiresAt };
    grantId = bodyOf(await post('/grant', asked), 201, GrantReply).id;
  });
  after(async () => {
    await database?.end();
    await api?.stop();
  });

  const post = (path: string, body: object, key?: string): Promise<Answer> =>
    call(api, 'POST', path, {
      headers: { 'x-service-key': account.legacyKey, ...(key && { 'idempotency-key': key }) },
      body,
    });
  const get = (path: string): Promise<Answer> =>
    call(api, 'GET', path, { headers: { 'x-service-key': account.legacyKey } });
  const invoke = (key: string): Promise<Answer> =>
    post(
      '/invoke',
      { targetAgentId: 'target', grantId, capability: 'translate', payload: { key } },
      key,
    );

  /** Made in the middle of that month. The key is its payload too. */
  async function made(key: string, month: number, end?: 'succeeded' | 'failed'): Promise<string> {
    const { id } = bodyOf(await invoke(key), 202, InvocationReply);
    const uuid = uuidOf('invocation', id) ?? assert.fail();
    await beginInvocation(database, uuid);
    await beginAttempt(database, uuid);
    if (end === 'succeeded') await recordResult(database, uuid, `{"said":"${key}"}`);
    if (end === 'failed') {
      await failInvocation(database, uuid, { code: 'agent_unavailable', message: 'away' });
    }
    const moved = uuidFloor(monthAt(month) + 14 * 86_400_000).slice(0, 13) + uuid.slice(13);
    await api.sql.query('update farebox.invocations set id = $2 where id = $1', [uuid, moved]);
    return `inv_${moved.replaceAll('-', '')}`;
  }

  const shown = async (id: string) => bodyOf(await get(`/invoke/${id}`), 200, InvocationReply);
  const receiptOf = async (id: string) =>
    bodyOf(await get(`/receipts/${id}`), 200, InvocationReceiptReply);

  it('is moved, and receipts, retries and doctor do not miss it', async () => {
    const succeeded = await made('a', OLD, 'succeeded');
    const failed = await made('b', OLD - 1, 'failed');
    const open = await made('c', OLD);
    const later = await made('d', OLD + 1, 'succeeded');
    const before = await Promise.all([succeeded, failed].map(receiptOf));
    const { result, ...rest } = await shown(succeeded);
    assert.deepEqual(result, { said: 'a' });

    assert.equal(await archiveInvocations(database, monthAt(OLD + 1)), tableAt(OLD));
    const { rows } = await api.sql.query(`select payload, result from ${tableAt(OLD)} order by id`);
    assert.deepEqual(rows, [
      { payload: { key: 'b' }, result: null },
      { payload: { key: 'a' }, result: { said: 'a' } },
    ]);
    assert.deepEqual(await shown(succeeded), rest);
    assert.equal((await shown(failed)).error?.code, 'agent_unavailable');
    assert.deepEqual((await shown(later)).result, { said: 'd' });
    assert.equal((await shown(open)).status, 'running');
    const uuid = uuidOf('invocation', open) ?? assert.fail();
    assert.equal((await beginAttempt(database, uuid))?.payloadText, '{"key":"c"}');
    await recordResult(database, uuid, '{}');

    const replayed = await invoke('a');
    assert.equal(replayed.headers.get('idempotency-replayed'), 'true');
    assert.deepEqual(bodyOf(replayed, 200, InvocationReply), rest);
    assert.deepEqual(await Promise.all([succeeded, failed].map(receiptOf)), before);
    for (const { receipt } of before) {
      const answer = await call(api, 'POST', '/v1/receipts/verify', {
        key: account.developerKey,
        body: { receipt },
      });
      assert.equal(bodyOf(answer, 200, VerifyReply).valid, true);
    }
    assert.deepEqual(await examineLedger(database), []);
  });

  it('goes to the same table if the rest of it is moved later, and then there is nothing left', async () => {
    assert.equal(await archiveInvocations(database, monthAt(OLD + 1)), tableAt(OLD));
    const { rows } = await api.sql.query(`select count(*)::int as count from ${tableAt(OLD)}`);
    assert.deepEqual(rows, [{ count: 3 }]);
    assert.equal(await archiveInvocations(database, monthAt(OLD + 1)), undefined);
  });

  it('is moved by the command, in as many steps as it takes', async () => {
    // A row of the agent that exists.
    await api.sql.query(
      `insert into farebox.invocations
       select (jsonb_populate_record(i, jsonb_build_object(
         'id', overlay(i.id::text placing lpad(n::text, 12, '0') from 25), 'idempotency_key', null))).*
       from farebox.invocations i cross join generate_series(1, 45) as n where i.idempotency_key = 'd'`,
    );
    await ensureChargePartitions(api.databaseUrl, monthAt(OLD + 1));
    const table = tableAt(OLD + 1);
    assert.match(
      await farebox(['archive', '--month', nameAt(OLD + 1)], { env: api.env }),
      new RegExp(
        `Archived 0 charges of [^]*\\nWhat agents received and returned until then is now in ${table}\\.\\n`,
      ),
    );
    const { rows } = await api.sql.query(`select count(*)::int as count from ${table}`);
    assert.deepEqual(rows, [{ count: 46 }]);
    assert.equal(await archiveInvocations(database, monthAt(1)), undefined);
    assert.deepEqual(await examineLedger(database), []);
  });

  it('does not keep the command from saying what it archived before, when it cannot be moved', async () => {
    await ensureChargePartitions(api.databaseUrl, monthAt(ALONE));
    await made('e', ALONE, 'succeeded');
    await api.sql.query(`create table ${tableAt(ALONE)} (id uuid)`);
    const failed = await farebox(['archive', '--month', nameAt(ALONE)], { env: api.env }).then(
      () => assert.fail(),
      (error: unknown) => error as { stdout: string; stderr: string },
    );
    assert.match(failed.stdout, /^Archived 0 charges of /);
    assert.match(failed.stderr, /farebox: .*payload/);
  });
});
