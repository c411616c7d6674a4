/** A process that starts while its network resets connections, or while there is no Postgres. */
import assert from 'node:assert/strict';
import pino from 'pino';
import { startPatience, StartTimeoutError } from '../../src/processes/patience.ts';
import { createDatabase, type Database } from '../../src/store/database.ts';
import { startFaultyLine, type FaultyLine } from '../support/faulty-line.ts';
import { call } from '../support/http.ts';
import { Random, SEED } from '../support/random.ts';
import {
  createTestDatabase,
  startApiProcess,
  startWorkerProcess,
  testEnvironment,
  until,
  type Environment,
  type TestDatabase,
} from '../support/stack.ts';

/** A start needs about two hundred pieces of data from Postgres, so none succeeds at its first attempt. */
const RESET_PART = 0.05;
const QUIET = pino({ level: 'silent' });

describe(`the start of a process (SEED=${SEED})`, () => {
  const random = new Random(SEED);
  let database: TestDatabase;
  let postgres: FaultyLine;
  let temporal: FaultyLine;
  let databaseUrl: string;
  let env: Environment;

  before(async () => {
    database = await createTestDatabase();
    const direct = await testEnvironment(database);
    const url = new URL(database.url);
    postgres = await lineTo(url, random);
    temporal = await lineTo(new URL(`tcp://${direct['TEMPORAL_ADDRESS']}`), random);
    url.port = String(postgres.port);
    databaseUrl = url.href;
    env = {
      ...direct,
      DATABASE_URL: databaseUrl,
      TEMPORAL_ADDRESS: `127.0.0.1:${temporal.port}`,
      STRIPE_API_BASE: 'http://127.0.0.1:9',
      STRIPE_SECRET_KEY: 'sk_test_none',
      STRIPE_WEBHOOK_SECRET: 'whsec_none',
    };
  });
  afterEach(() => {
    postgres.mend();
    temporal.mend();
  });
  after(async () => {
    await postgres?.stop();
    await temporal?.stop();
    await database?.drop();
  });

  it('succeeds for an API and a worker whose connections are reset', async () => {
    postgres.damage({ kind: 'resetting', part: RESET_PART });
    temporal.damage({ kind: 'resetting', part: RESET_PART / 5 });
    const started = await Promise.all([startApiProcess({ env }), startWorkerProcess({ env })]);
    postgres.mend();
    temporal.mend();
    try {
      await until(async () => (await call(started[0], 'GET', '/readyz')).status === 200);
    } finally {
      await Promise.all(started.map((each) => each.stop()));
    }
  });

  it('is given up with the reason when Postgres stays away', async () => {
    postgres.damage({ kind: 'cut' });
    let attempts = 0;
    // On a busy machine, the first attempt may take longer than the patience: then more of it.
    for (let patienceMs = 2_000; attempts < 2 && patienceMs < 200_000; patienceMs *= 2) {
      attempts = 0;
      const error = await startPatience(QUIET, { patienceMs })(() => {
        attempts += 1;
        return open(databaseUrl);
      }).catch((caught: unknown) => caught);
      assert.ok(error instanceof StartTimeoutError);
      assert.match(error.message, /^Gave up after \d+ s without Postgres: .*ECONNRESET/);
    }
    assert.ok(attempts > 1);
  });

  it('takes as long as it needs while each step succeeds in time', async () => {
    // Both steps together take longer than the patience. If one of them alone does, on a busy machine, with more of it.
    for (let patienceMs = 4_000; ; patienceMs *= 4) {
      const isDone = await takeTwoSteps(patienceMs).catch((error: unknown) => {
        if (!(error instanceof StartTimeoutError) || patienceMs > 60_000) throw error;
        return false;
      });
      if (isDone) return;
    }
  });

  async function takeTwoSteps(patienceMs: number): Promise<true> {
    const patiently = startPatience(QUIET, { patienceMs });
    for (let step = 1; step <= 2; step += 1) {
      postgres.damage({ kind: 'cut' });
      const begunAt = performance.now();
      const opened = await patiently(() => {
        if (performance.now() - begunAt > 0.55 * patienceMs) postgres.mend();
        return open(databaseUrl);
      });
      await opened.end();
    }
    return true;
  }

  it('is not tried again with a wrong password, database or host', async () => {
    for (const [name, value, reason] of [
      [
        'password',
        'wrong',
        /^Error: PostgreSQL refused what is in DATABASE_URL: password authentication failed/,
      ],
      [
        'pathname',
        '/absent',
        /^Error: PostgreSQL refused what is in DATABASE_URL: database "absent" does not exist/,
      ],
      ['hostname', 'absent.invalid', /ENOTFOUND/],
    ] as const) {
      const url = new URL(databaseUrl);
      url[name] = value;
      let attempts = 0;
      const attempt = () => {
        attempts += 1;
        return open(url.href);
      };
      await assert.rejects(startPatience(QUIET)(attempt), reason);
      assert.equal(attempts, 1);
    }
  });
});

function lineTo({ hostname: host, port }: URL, random: Random): Promise<FaultyLine> {
  return startFaultyLine({ host, port: Number(port) }, () => random.next());
}

function open(url: string): Promise<Database> {
  return createDatabase(url, { maxPoolSize: 1, onError: () => {} });
}
