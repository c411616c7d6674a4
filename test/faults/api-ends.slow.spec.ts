/** An API process that exits, cleanly or not, with charges in flight. */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { uuidOf, wireId } from '../../src/domain/ids.ts';
import { ChargeReply, DeveloperChargeReply } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { bodyOf, call, type Answer } from '../support/http.ts';
import { startApiProcess, until, type Server, type ServerProcess } from '../support/stack.ts';
import { holdConsumer, waitedTooLong } from '../support/row-locks.ts';

/** Less than the process waits for requests before its end. */
const DRAIN_MS = 4_000;

describe('the end of an API process', () => {
  let api: TestApi;
  let account: TestAccount;
  let victim: ServerProcess;

  before(async () => {
    api = await startTestApi();
  });
  beforeEach(async () => {
    account = await api.createAccount(1_000);
    victim = await startApiProcess({ env: api.env });
    // The process knows its key and its tool, so that a charge goes to the ledger at once.
    await charge(victim, 'warm-up');
  });
  afterEach(() => victim?.stop());
  after(() => api?.stop());

  const charge = (server: Server, idempotencyKey: string): Promise<Answer> =>
    call(server, 'POST', '/v1/charges', {
      key: account.developerKey,
      headers: { 'idempotency-key': idempotencyKey },
      body: { apiKey: account.consumerKey, tool: 'search', amount: 1 },
    });

  /** Charges of this consumer, oldest first, with the balance after each in micros. */
  const stored = async () =>
    (
      await api.sql.query<{ id: string; balance: string }>(
        `select id, balance_micros as balance from farebox.charges where consumer_id = $1 order by id`,
        [uuidOf('consumer', account.consumerId)],
      )
    ).rows;

  /** A charge that is committed while the victim is stopped, with other requests that it has not read. */
  async function commitUnread() {
    for (let round = 0; ; round += 1) {
      const { length } = await stored();
      const first = `first ${round}`;
      const others = Array.from({ length: 20 }, (_, index) => `job ${round}.${index}`);
      const held = await holdConsumer(api.databaseUrl, account.consumerId);
      const line = charge(victim, first);
      await held.waited(1);
      // While stopped, it cannot read the outcome that Postgres commits, let alone answer.
      victim.kill('SIGSTOP');
      const lines = Promise.allSettled([line, ...others.map((key) => charge(victim, key))]);
      await held.release();
      const isCommitted = await until(async () => (await stored()).length === length + 1, {
        timeoutMs: 2_000,
      }).catch(() => false);
      if (isCommitted) return { first, others, lines };
      // The charge waited for its row longer than it may, on a busy machine, so Postgres ended it.
      victim.kill('SIGCONT');
      await lines;
    }
  }

  it('lets another process answer for the charges that it had committed when it was killed', async () => {
    const { first, others, lines } = await commitUnread();
    victim.kill('SIGKILL');
    for (const line of await lines) assert.equal(line.status, 'rejected');

    const all = await stored();
    const committed = all.at(-1);
    const answer = await charge(api, first);
    const replay = bodyOf(answer, 201, ChargeReply);
    assert.equal(answer.headers.get('idempotency-replayed'), 'true');
    assert.equal(replay.id, wireId('charge', committed?.id ?? ''));
    assert.equal(replay.balance, Number(committed?.balance) / 1e6);
    const { receipt } = bodyOf(
      await call(api, 'GET', `/v1/charges/${replay.id}`, { key: account.developerKey }),
      200,
      DeveloperChargeReply,
    );
    assert.equal(replay.receipt, receipt);
    // Charges that it had not sent to Postgres were never made, and are made now, once.
    for (const key of others) {
      const again = await charge(api, key);
      assert.equal(again.status, 201);
      assert.equal(again.headers.get('idempotency-replayed'), null);
    }
    assert.equal((await stored()).length, all.length + 20);
  });

  it('finishes the requests in progress when it is told to stop', async () => {
    await until(async () => (await stopInFlight()) || renewVictim());
  });

  async function renewVictim(): Promise<void> {
    victim = await startApiProcess({ env: api.env });
    await charge(victim, 'warm-up');
  }

  /**
   * Returns false if, on a busy machine, charges have waited for their row longer than they may, or longer than the
   * process waits for requests before its end.
   */
  async function stopInFlight(): Promise<boolean> {
    // On open connections, so that the process has each request before it answers the next.
    const agent = new Agent({ keepAlive: true, maxSockets: 50 });
    const post = (key: string) => chargeThrough(agent, victim, account, key);
    await Promise.all(
      Array.from({ length: 50 }, (_, index) => post(`opens ${victim.pid}.${index}`)),
    );
    const { length } = await stored();
    const held = await holdConsumer(api.databaseUrl, account.consumerId);
    const inFlight = Array.from({ length: 50 }, (_, index) => post(`job ${victim.pid}.${index}`));
    await held.waited(1, ...inFlight);
    for (let calls = 0; calls < 3; calls += 1) await call(victim, 'GET', '/healthz');
    victim.kill('SIGTERM');
    await until(() =>
      call(victim, 'GET', '/healthz').then(
        () => false,
        () => true,
      ),
    );
    // A supervisor and the parent process may both pass it on.
    victim.kill('SIGTERM');
    await held.release();
    const answers = await Promise.allSettled(inFlight);
    assert.equal(await victim.exited, 'exit code 0');
    agent.destroy();
    const answered = answers.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
    if (answered.length < inFlight.length) return false;
    const made = answered.filter((answer) => !waitedTooLong(answer));
    for (const answer of made) assert.equal(answer.status, 201);
    assert.equal((await stored()).length, length + made.length);
    return made.length === answered.length;
  }

  it('drops the answer of no charge that it made, for clients that never pause', async () => {
    await until(async () => (await stopUnderTraffic()) || renewVictim());
  });

  /** Returns false if, on a busy machine, charges waited longer than the process waits for requests before its end. */
  async function stopUnderTraffic(): Promise<boolean> {
    const rich = await api.createAccount(1_000_000);
    const agent = new Agent({ keepAlive: true, maxSockets: 30 });
    const answered = new Set<string>();
    let told = 0;
    let dropped = 0;
    const chargeForever = async (client: number) => {
      for (let calls = 0; ; calls += 1) {
        try {
          const answer = await chargeThrough(agent, victim, rich, `${client}/${calls}`);
          if (answer.isLast) told += 1;
          // On a busy machine, it has waited for its row longer than it may, and was not made.
          if (waitedTooLong(answer)) continue;
          assert.equal(answer.status, 201);
          answered.add(answer.body.id);
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
          if (!(error instanceof Error && 'code' in error)) throw error;
          return void (dropped += 1);
        }
      }
    };
    const clients = Promise.all(Array.from({ length: 30 }, (_, client) => chargeForever(client)));
    // A client that fails ends the test at once.
    await Promise.race([clients, until(() => answered.size > 300)]);
    // A moment between two flushes has no request in flight, and nobody to tell.
    const held = await holdConsumer(api.databaseUrl, rich.consumerId);
    await held.waited(1);
    const toldMs = performance.now();
    victim.kill('SIGTERM');
    const isClosing = () =>
      fetch(`${victim.url}/readyz`)
        .then(() => false)
        .catch(() => true);
    await until(isClosing);
    await held.release();
    await clients;
    const isInTime = performance.now() - toldMs < DRAIN_MS;
    assert.equal(await victim.exited, 'exit code 0');
    agent.destroy();
    if (!isInTime) return false;
    assert.equal(dropped, 30);
    assert.ok(told > 0, 'no client was told that its line ends');
    const { rows } = await api.sql.query<{ id: string }>(
      'select id from farebox.charges where consumer_id = $1',
      [uuidOf('consumer', rich.consumerId)],
    );
    assert.deepEqual(new Set(rows.map(({ id }) => wireId('charge', id))), answered);
    return true;
  }

  it('leaves the books whole', () => proveBooks(api.env, { processor: false }));
});

/** Through an agent that keeps connections open, and reports when one is cut. */
function chargeThrough(
  agent: Agent,
  server: Server,
  account: TestAccount,
  idempotencyKey: string,
): Promise<{ status: number; isLast: boolean; body: { id: string } }> {
  return new Promise((resolve, reject) => {
    const sent = request(
      `${server.url}/v1/charges`,
      {
        agent,
        method: 'POST',
        headers: {
          authorization: `Bearer ${account.developerKey}`,
          'content-type': 'application/json',
          'idempotency-key': idempotencyKey,
        },
      },
      (response) => {
        const { statusCode: status = 0, headers } = response;
        const isLast = headers.connection === 'close';
        json(response).then(
          (body) => resolve({ status, isLast, body: body as { id: string } }),
          reject,
        );
      },
    );
    sent.on('error', reject);
    sent.end(JSON.stringify({ apiKey: account.consumerKey, tool: 'search', amount: 1 }));
  });
}
