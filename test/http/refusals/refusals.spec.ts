/** A refusal can be found by its request id: it is in the log, without a key, and in the counts. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { wireId } from '../../../src/domain/ids.ts';
import { RefusalCounts } from '../../../src/http/refusals/refusal-counts.ts';
import { RefusalLog } from '../../../src/http/refusals/refusal-log.ts';
import { RefusalsReply } from '../../../src/schemas/refusals.ts';
import type { TestAccount } from '../../support/accounts.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { makeBudget, makeKey } from '../../support/budget-requests.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../../support/http.ts';
import { askSettle, takeLease } from '../../support/lease-requests.ts';
import { until } from '../../support/stack.ts';

type Line = Readonly<Record<string, unknown>>;

const idOf = ({ headers }: Answer) => headers.get('x-request-id') ?? '';

describe('a refused request', () => {
  let api: TestApi;
  let account: TestAccount;

  before(async () => {
    api = await startTestApi();
    account = await api.createAccount(1);
  });
  after(() => api.stop());

  async function linesOf(requestId: string): Promise<Line[]> {
    const lines = (await readFile(api.logFile, 'utf8')).trim().split('\n');
    return lines.filter((line) => line.includes(requestId)).map((line) => JSON.parse(line) as Line);
  }

  async function assertTwoLines(answer: Answer, expected: readonly unknown[]): Promise<void> {
    const lines = await until(async () => {
      const found = await linesOf(idOf(answer));
      return found.length >= 2 && found;
    });
    assert.deepEqual(
      lines.map(({ code, status, route }) => [code, status, route]),
      [expected, expected],
    );
  }

  /** The one line of a refusal, without the fields of every line. */
  async function lineOf(requestId: string): Promise<Line> {
    const lines = await until(async () => {
      const found = await linesOf(requestId);
      return found.length > 0 && found;
    });
    assert.equal(lines.length, 1);
    const { level, time, pid, hostname, name, ...line } = lines[0] as Line;
    assert.deepEqual([level, name, typeof time, typeof pid], [30, 'api', 'number', 'number']);
    assert.ok(hostname);
    return line;
  }

  it('writes a line with its request id, code, route, role and account', async () => {
    const answer = await charge(api, account, { amount: 5 });
    assert.equal(answer.status, 402);
    const { rows } = await api.sql.query<{ id: string }>('select id from farebox.accounts');
    assert.deepEqual(await lineOf(idOf(answer)), {
      requestId: idOf(answer),
      code: 'insufficient_balance',
      status: 402,
      method: 'POST',
      route: '/v1/charges',
      role: 'developer',
      accountId: wireId('account', rows[0]?.id ?? ''),
      msg: 'request refused',
    });
  });

  it('is logged with the pattern of its route, not with the path sent', async () => {
    const key = account.developerKey;
    const answer = await call(api, 'GET', '/v1/charges/chg_secret', { key });
    const line = await lineOf(idOf(answer));
    assert.deepEqual([line['code'], line['route']], ['not_found', '/v1/charges/:id']);
    const nowhere = await call(api, 'GET', '/v1/secret-path', { key });
    assert.equal((await lineOf(idOf(nowhere)))['route'], 'none');
  });

  it('is logged without an account when its key is unknown', async () => {
    const answer = await call(api, 'GET', '/v1/balance', { key: `${account.consumerKey}x` });
    assertError(answer, 401, 'invalid_api_key');
    const line = await lineOf(idOf(answer));
    assert.deepEqual(
      [line['code'], line['role'], line['accountId']],
      ['invalid_api_key', undefined, undefined],
    );
  });

  it('is logged when it is not valid HTTP', async () => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    socket.write('nonsense\r\n\r\n');
    const [, requestId = ''] = /X-Request-Id: (\S+)/.exec(await text(socket)) ?? [];
    const line = await lineOf(requestId);
    assert.deepEqual([line['code'], line['route']], ['invalid_request', 'none']);
  });

  it('is logged for each refused charge of a batch', async () => {
    const { consumerKey: apiKey, developerKey: key } = account;
    const charges = [5, 0.01, 6].map((amount) => ({ apiKey, tool: 'search', amount }));
    const answer = await call(api, 'POST', '/v1/charges/batch', { key, body: { charges } });
    assert.equal(answer.status, 200);
    await assertTwoLines(answer, ['insufficient_balance', 402, '/v1/charges/batch']);
  });

  it('is logged and counted for each refused entry of a settlement', async () => {
    const budget = await makeBudget(api, account.consumerKey, { allowLeases: true });
    const { key } = await makeKey(api, account.consumerKey, budget.id);
    const lease = await takeLease(api, account, key, { amount: 0.03 });
    const entries = [{ sequence: 1 }, { sequence: 2 }, { sequence: 3, amount: 0.015 }];
    const answer = await askSettle(api, account, lease.id, entries);
    assert.equal(answer.status, 200);
    await assertTwoLines(answer, ['exceeds_lease', 402, '/v1/leases/:id/settle']);
    const ofTool = await until(async () => {
      const list = await call(api, 'GET', '/v1/refusals', { key: account.developerKey });
      return bodyOf(list, 200, RefusalsReply).refusals.find(({ code }) => code === 'exceeds_lease');
    });
    assert.deepEqual([ofTool.tool, ofTool.count, ofTool.requestIds], ['search', 2, [idOf(answer)]]);
  });

  it('puts no key into the log, and successes write no line', async () => {
    const answer = await charge(api, account, { amount: 0.01 });
    assert.equal(answer.status, 201);
    // A later refusal, so that the line would be there by now.
    await lineOf(idOf(await charge(api, account, { amount: 5 })));
    assert.deepEqual(await linesOf(idOf(answer)), []);
    const log = await readFile(api.logFile, 'utf8');
    for (const key of [account.consumerKey, account.developerKey, 'chg_secret', 'secret-path']) {
      assert.ok(!log.includes(key), `the log has ${key.slice(0, 12)}...`);
    }
  });
});

describe('the log of refusals', () => {
  it('is limited for each account, and counts the omitted lines', async () => {
    const lines: Line[] = [];
    const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as Line) });
    const refusals = new RefusalLog(log);
    const refusal = { code: 'not_found', status: 404, method: 'GET', route: '/' } as const;
    for (let index = 0; index < 500; index += 1) {
      refusals.write({ ...refusal, requestId: `req_${index}`, accountId: 'acct_loud' });
    }
    refusals.write({ ...refusal, requestId: 'req_quiet', accountId: 'acct_quiet' });
    assert.equal(lines.length, 21);
    assert.equal(lines.at(-1)?.['requestId'], 'req_quiet');
    await until(() => lines.length > 21);
    assert.deepEqual(
      [lines[21]?.['refusals'], lines[21]?.['msg']],
      [480, 'some refusals were not logged'],
    );
    refusals.write({ ...refusal, requestId: 'req_later', accountId: 'acct_loud' });
    assert.equal(lines.at(-1)?.['requestId'], 'req_later');
  });

  it('is limited for all accounts together', () => {
    let lines = 0;
    const refusals = new RefusalLog(pino({}, { write: () => void (lines += 1) }));
    for (let index = 0; index < 500; index += 1) {
      refusals.write({
        requestId: `req_${index}`,
        code: 'not_found',
        status: 404,
        method: 'GET',
        route: '/',
        accountId: `acct_${index}`,
      });
    }
    assert.equal(lines, 100);
  });
});

describe('the counts of refusals', () => {
  it('are by developer, tool and code', () => {
    const counts = new RefusalCounts();
    counts.add('dev_1', 'search', 'insufficient_balance');
    counts.add('dev_1', 'search', 'insufficient_balance');
    counts.add('dev_1', '', 'unknown_tool');
    counts.add('dev_2', 'search', 'insufficient_balance');
    assert.deepEqual(
      counts.list().map(({ developerId, tool, code, count }) => [developerId, tool, code, count]),
      [
        ['dev_1', 'search', 'insufficient_balance', 2],
        ['dev_1', '', 'unknown_tool', 1],
        ['dev_2', 'search', 'insufficient_balance', 1],
      ],
    );
  });

  it('stay few, for any number of tools and developers', () => {
    const counts = new RefusalCounts();
    for (let index = 0; index < 1_000; index += 1) {
      counts.add('dev_1', `tool-${index}`, 'insufficient_balance');
    }
    const [last] = counts.list().slice(-1);
    assert.deepEqual([counts.list().length, last?.tool, last?.count], [51, '(other)', 950]);
    for (let index = 0; index < 1_000; index += 1) {
      counts.add(`dev_more_${index}`, 'search', 'insufficient_balance');
    }
    const all = counts.list();
    assert.equal(new Set(all.map(({ developerId }) => developerId)).size, 201);
    assert.equal(
      all.reduce((sum, { count }) => sum + count, 0),
      2_000,
    );
  });
});
