/**
 * API and worker processes are killed while callers place, capture and release holds. HOLD_KILLS says how often.
 * Answered calls are kept, unanswered ones are resolved by the same key, and nothing stays reserved.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { wireId } from '../../src/domain/ids.ts';
import { Random } from '../support/random.ts';
import { createTestAccounts, type TestAccount } from '../support/accounts.ts';
import { proveBooks } from '../support/books.ts';
import { isToRepeat, type Answer } from '../support/http.ts';
import { askCapture, askHold, askRelease, keyed } from '../support/hold-requests.ts';
import {
  startApiProcess,
  startProcesses,
  startWorkerProcess,
  until,
  type ServerProcess,
  type Stack,
} from '../support/stack.ts';

const KILLS = Number(process.env['HOLD_KILLS'] ?? 6);
const CALLERS = 12;
const RETRY_MS = 25;
/** Long enough for a caller to return to a hold, short enough for a test to see abandoned ones expire. */
const EXPIRES_IN_SECONDS = 3;

describe('holds, while processes are killed', function () {
  this.timeout(600_000 + KILLS * 10_000);
  const seed = Number(process.env['SEED'] ?? randomInt(2 ** 32));
  const random = new Random(seed);
  let stack: Stack<ServerProcess>;
  let apis: ServerProcess[];
  let worker: ServerProcess;
  let client: Client;
  let accounts: TestAccount[];
  const over = new AbortController();
  /** Micros charged by captures, as answered, by the charge's id. */
  const charged = new Map<string, number>();
  const violations: string[] = [];

  before(async () => {
    stack = await startProcesses();
    const { PORT: _, BASE_URL: __, ...env } = stack.env;
    apis = [stack.api, await startApiProcess({ env })];
    worker = stack.worker;
    client = new Client({ connectionString: stack.database.url });
    await client.connect();
    accounts = await createTestAccounts(stack.database.url, 3, 100_000);
  });
  after(async () => {
    await client?.end();
    await Promise.all([...(apis ?? []), worker].map((each) => each?.stop()));
    await stack?.stop();
  });

  it(`lose no money and charge nothing twice (${KILLS} kills, SEED=${seed})`, async () => {
    const callers = Array.from({ length: CALLERS }, (_, n) => callUntilOver(n));
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = charged.size;
      await (kill % 3 === 2 ? replaceWorker() : replaceApi(kill % 2));
      await until(() => charged.size > before + 20);
    }
    over.abort();
    await Promise.all(callers);
    assert.deepEqual(violations, []);

    const none = `select from farebox.holds where state = 0 limit 1`;
    await until(async () => (await client.query(none)).rowCount === 0);
    const { rows } = await client.query<{ id: string; micros: number }>(
      'select id, amount_micros::int as micros from farebox.charges',
    );
    const stored = new Map(rows.map(({ id, micros }) => [wireId('charge', id), micros]));
    assert.deepEqual(stored, charged);
    await proveBooks(stack.env, { processor: false });
  });

  /** Calls with one hold each: most capture, some release, and some abandon it. */
  async function callUntilOver(caller: number): Promise<void> {
    for (let n = 0; !over.signal.aborted; n += 1) {
      const account = random.pick(accounts);
      const key = keyed(`call ${caller}.${n}`);
      const held = await persist((server) =>
        askHold(server, account, { amount: 0.01, expiresIn: EXPIRES_IN_SECONDS }, key),
      );
      if (held.status !== 201) violations.push(JSON.stringify(held.body));
      const { id } = held.body as { id: string };
      const fate = random.weighted({ capture: 6, parts: 2, release: 2, forget: 1 });
      if (fate === 'capture') await settle(account, id, { amount: 0.004 }, key);
      if (fate === 'parts') {
        await settle(account, id, { amount: 0.001, final: false }, keyed(`part ${caller}.${n}`));
        await settle(account, id, {}, key);
      }
      if (fate === 'release') {
        const released = await persist((server) => askRelease(server, account, id));
        if (released.status !== 200 && !isExpired(released)) {
          violations.push(JSON.stringify(released.body));
        }
      }
    }
  }

  async function settle(
    account: TestAccount,
    id: string,
    body: object,
    key: Record<string, string>,
  ) {
    const answer = await persist((server) => askCapture(server, account, id, body, key));
    if (answer.status === 201) {
      const { id: charge, amount } = answer.body as { id: string; amount: number };
      if (charged.has(charge)) violations.push(`${charge} was the answer to two captures`);
      charged.set(charge, Math.round(amount * 1e6));
    } else if (!isExpired(answer)) {
      violations.push(JSON.stringify(answer.body));
    }
  }

  /** As the documentation says: again with the same key, until the outcome is known. */
  async function persist(ask: (server: ServerProcess) => Promise<Answer>): Promise<Answer> {
    for (;;) {
      try {
        const answer = await ask(random.pick(apis));
        if (!isToRepeat(answer)) return answer;
      } catch (error) {
        // fetch: the connection broke. Anything else is a bug in the test.
        if (!(error instanceof TypeError && error.cause !== undefined)) throw error;
      }
      await delay(RETRY_MS);
    }
  }

  async function replaceApi(index: number): Promise<void> {
    const victim = apis[index] as ServerProcess;
    victim.kill('SIGKILL');
    await victim.exited;
    apis[index] = await startApiProcess({ env: { ...stack.env, PORT: new URL(victim.url).port } });
  }

  async function replaceWorker(): Promise<void> {
    worker.kill('SIGKILL');
    await worker.exited;
    worker = await startWorkerProcess({ env: stack.env });
  }
});

function isExpired({ body }: Answer): boolean {
  return (body as { error?: { status?: string } }).error?.status === 'expired';
}
