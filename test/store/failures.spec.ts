/** A connection to Postgres that the network resets: reads are refused for now, and the outcome of writes is unknown. */
import { BalanceReply } from '../../src/schemas/balance.ts';
import { ChargeReply } from '../../src/schemas/charges.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { startFaultyLine, type FaultyLine } from '../support/faulty-line.ts';
import { assertError, bodyOf, call, charge, type Answer } from '../support/http.ts';
import { startApi, until, type Server } from '../support/stack.ts';

describe('a reset of connections to Postgres', () => {
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

  it('is answered as an outage, and never as an internal error', async () => {
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
});
