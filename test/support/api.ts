/**
 * APIs over one database, without a worker and without a processor: charging and reading need
 * neither, and so their tests run neither.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import {
  createTestDatabase,
  startApi,
  startApiProcess,
  WITHOUT_RATE_LIMITS,
  type Environment,
  type Server,
  type ServerProcess,
  type Start,
} from './stack.ts';
import { createTestAccount, type TestAccount } from './accounts.ts';
import { proveBooks } from './books.ts';
import { endAll } from './end-all.ts';

/** What a request may change: equal before and after means that it did nothing. */
export interface Books {
  readonly credited: string;
  readonly spent: string;
  /** By holds and disputes. */
  readonly held: string;
  readonly charges: string;
  readonly tools: string;
}

export type TestApi<S extends Server = Server> = S & {
  /** All of them; the first is this one. They share the database alone. */
  readonly servers: readonly [S, ...S[]];
  readonly env: Environment;
  readonly databaseUrl: string;
  /** For looking at rows, and for holding locks. */
  readonly sql: Client;
  createAccount(balanceDollars: number): Promise<TestAccount>;
  /** The process number of a database connection whose statement waits for a lock. */
  readonly waitingBackend: () => Promise<number | undefined>;
  books(): Promise<Books>;
  /** Runs the function, and checks that the books did not change. */
  changingNothing<T>(work: () => Promise<T>): Promise<T>;
};

interface TestApiOptions {
  readonly servers?: number;
  readonly env?: Environment;
}

/** All in this process. */
export function startTestApi(options: TestApiOptions = {}): Promise<TestApi> {
  return startTestApiOf(startApi, options);
}

/**
 * For the suite that calls this. The members are there from the first `before` hook of the suite on. After
 * its last test, the books are proven, and everything is stopped.
 */
export function openTestApi(options: TestApiOptions = {}): TestApi {
  const api = {} as TestApi;
  before(async () => {
    Object.assign(api, await startTestApi(options));
  });
  after(() =>
    endAll(
      () => proveBooks(api.env, { processor: false }),
      () => api.stop(),
    ),
  );
  return api;
}

/** All in processes of their own, which a test may kill. */
export function startTestApiProcesses({
  nodeFlags,
  ...options
}: TestApiOptions & { readonly nodeFlags?: readonly string[] } = {}): Promise<
  TestApi<ServerProcess>
> {
  return startTestApiOf(({ env }) => startApiProcess({ env, nodeFlags }), options);
}

async function startTestApiOf<S extends Server>(
  start: Start<S>,
  { servers: count = 1, env: more = {} }: TestApiOptions,
): Promise<TestApi<S>> {
  const database = await createTestDatabase();
  const env: Environment = {
    DATABASE_URL: database.url,
    // An address where nothing listens.
    TEMPORAL_ADDRESS: '127.0.0.1:9',
    STRIPE_API_BASE: 'http://127.0.0.1:9',
    STRIPE_SECRET_KEY: 'sk_test_none',
    STRIPE_WEBHOOK_SECRET: 'whsec_none',
    MASTER_SECRET: randomBytes(32).toString('base64url'),
    ...WITHOUT_RATE_LIMITS,
    ...more,
  };
  const [first, ...others] = await Promise.all([
    start({ env }),
    ...Array.from({ length: count - 1 }, () => start({ env })),
  ]);
  const sql = new Client({ connectionString: database.url });
  await sql.connect();
  const books = async () => {
    const { rows } = await sql.query<Books>(`
      select coalesce(sum(credited_micros), 0)::text as credited,
        coalesce(sum(spent_micros), 0)::text as spent,
        coalesce(sum(held_micros), 0)::text as held,
        (select count(*) from farebox.charges)::text as charges,
        (select count(*) from farebox.tools)::text as tools
      from farebox.consumers
    `);
    return rows[0] as Books;
  };
  return {
    ...first,
    servers: [first, ...others],
    env,
    databaseUrl: database.url,
    sql,
    createAccount: (balanceDollars) => createTestAccount(database.url, balanceDollars),
    waitingBackend: async () => {
      // Inside a transaction, pg_stat_activity is a snapshot of its first look.
      await sql.query('select pg_stat_clear_snapshot()');
      const { rows } = await sql.query<{ pid: number }>(
        `select pid from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rows[0]?.pid;
    },
    books,
    changingNothing: async (work) => {
      const before = await books();
      const result = await work();
      assert.deepEqual(await books(), before);
      return result;
    },
    stop: () =>
      endAll(
        () => sql.end(),
        ...[first, ...others].map((server) => () => server.stop()),
        () => database.drop(),
      ),
  };
}
