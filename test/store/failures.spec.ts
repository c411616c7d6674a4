/**
 * Connections to Postgres that the network resets or forgets: reads are refused for now, and the outcome of
 * writes is unknown.
 */
import assert from 'node:assert/strict';
import { ChargeFailure } from '../../src/charging/charge-failure.ts';
import { apiErrorOf, writeErrorOf } from '../../src/http/answer-errors.ts';
import { BalanceReply } from '../../src/schemas/balance.ts';
import { ChargeReply, RefundReply } from '../../src/schemas/charges.ts';
import { createDatabase, sql } from '../../src/store/database.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { startFaultyLine, type FaultyLine } from '../support/faulty-line.ts';
import { holdCommits } from '../support/held-commits.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../support/http.ts';
import { startApi, until, type Server } from '../support/stack.ts';

describe('a connection to Postgres that fails during a request', () => {
  let direct: TestApi;
  let line: FaultyLine;
  let api: Server;

  before(async () => {
    direct = await startTestApi();
    const url = new URL(direct.databaseUrl);
    line = await startFaultyLine({ host: url.hostname, port: Number(url.port) });
    url.port = String(line.port);
    api = await startApi({ env: { ...direct.env, DATABASE_URL: url.href } });
  });
  after(async () => {
    await api?.stop();
    await line?.stop();
    await direct?.stop();
  });

  it('is answered as an outage when it is reset, and never as an internal error', async () => {
    const account = await direct.createAccount(10);
    const { id } = bodyOf(await charge(api, account), 201, ChargeReply);
    const readBalance = () => call(api, 'GET', '/v1/balance', { key: account.consumerKey });
    const refund = () =>
      call(api, 'POST', `/v1/charges/${id}/refund`, { key: account.developerKey, body: {} });
    bodyOf(await readBalance(), 200, BalanceReply);
    /** While its statement waits for a lock. */
    const resetDuring = async (request: () => Promise<Answer>): Promise<Answer> => {
      await direct.sql.query('begin');
      await direct.sql.query('lock table farebox.consumers in access exclusive mode');
      const asked = request();
      await until(direct.waitingBackend);
      line.damage({ kind: 'cut' });
      const answer = await asked;
      line.mend();
      await direct.sql.query('rollback');
      await until(async () => (await readBalance()).status === 200);
      return answer;
    };
    assertError(await resetDuring(readBalance), 503, 'service_unavailable');
    assertError(await resetDuring(refund), 500, 'outcome_unknown');
  });

  it('is answered as an outage when Postgres ended the transaction of a process that stood still', async () => {
    const database = await createDatabase(direct.databaseUrl, { maxPoolSize: 1, onError() {} });
    try {
      // As Postgres says it to a process that stood still and then sends its next statement at the same moment.
      const work = database.transaction((tx) =>
        tx.query(sql.unsafe`do $$ begin raise 'idle for too long' using errcode = '25P03'; end $$`),
      );
      const error = await work.catch((thrown: unknown) => thrown);
      const { code } = apiErrorOf(error);
      assert.equal(code, 'service_unavailable', String(error));
    } finally {
      await database.end();
    }
  });

  it('tells a busy PostgreSQL from one that cannot be reached', async () => {
    const database = await createDatabase(direct.databaseUrl, {
      maxPoolSize: 1,
      waitMsMax: 10,
      onError: () => {},
    });
    try {
      const error = await database
        .connect(() => database.query(sql.unsafe`select 1`))
        .catch((thrown: unknown) => thrown);
      const { code, message } = apiErrorOf(error);
      assert.equal(code, 'service_unavailable');
      assert.equal(message, 'Too many requests are waiting for the database; try again shortly.');
    } finally {
      await database.end();
    }
  });

  it('tells of this request alone when a charge is not made: an earlier one with its key may have charged', () => {
    const { message } = apiErrorOf(new ChargeFailure('not_made', 'The request waited too long.'));
    assert.equal(
      message,
      'The request waited too long. This request charged nothing; try again shortly.',
    );
  });

  it('leaves the outcome unknown when the COMMIT is not answered', async () => {
    const account = await direct.createAccount(10);
    const { id } = bodyOf(await charge(api, account), 201, ChargeReply);
    const refund = () =>
      call(api, 'POST', `/v1/charges/${id}/refund`, {
        key: account.developerKey,
        headers: { 'Idempotency-Key': 'once' },
        body: {},
      });
    const held = await holdCommits(direct.sql, 'insert', 'farebox.charge_refunds');
    const asked = refund();
    await until(direct.waitingBackend);
    line.damage({ kind: 'silent' });
    await held.release();
    assertError(await asked, 500, 'outcome_unknown');
    line.mend();
    await held.end();
    bodyOf(await refund(), 201, RefundReply);
  });

  for (const code of ['EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT']) {
    it(`is answered as an outage, and a write as unknown, when its socket reports ${code}`, () => {
      const error = Object.assign(new Error(`read ${code}`), { code, syscall: 'read' });
      assert.equal(apiErrorOf(error).code, 'service_unavailable');
      assert.equal(apiErrorOf(writeErrorOf(error)).code, 'outcome_unknown');
    });
  }
});
