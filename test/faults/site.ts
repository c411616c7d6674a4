/** A complete site for faults: two APIs, a worker, Postgres and Temporal, and a list of possible faults. */
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import type { Random } from '../support/random.ts';
import {
  startApiProcess,
  startProcesses,
  startWorkerProcess,
  type Environment,
  type ServerProcess,
} from '../support/stack.ts';
import { startOwnPostgres, startOwnTemporal } from '../support/own-servers.ts';

export interface Site {
  readonly env: Environment;
  /** Their addresses stay the same; the processes may be down. */
  readonly apis: readonly [ServerProcess, ServerProcess];
  /** By name; each resolves when the damaged part has been started again. */
  readonly faults: Readonly<Record<string, () => Promise<void>>>;
  inSql<T>(work: (sql: Client) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export async function openSite(random: Random): Promise<Site> {
  const postgres = await startOwnPostgres();
  const temporal = await startOwnTemporal();
  const stack = await startProcesses({
    env: {
      DATABASE_URL: postgres.url,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: 'default',
      FIRST_ASK_MS: '5000',
      // The default: clients here expect any outcome, and do not wait for a part that is down.
      TOP_UP_ANSWER_MS: '10000',
    },
  });
  const apis: [ServerProcess, ServerProcess] = [
    stack.api,
    await startApiProcess({ env: { ...stack.env, PORT: undefined } }),
  ];
  let { worker } = stack;
  const inSql = <T>(work: (sql: Client) => Promise<T>) => withClient(postgres.url, work);
  const anyApi = () => random.pick([0, 1] as const);
  const restartApi = async (index: 0 | 1, signal: NodeJS.Signals) => {
    apis[index].kill(signal);
    await apis[index].exited;
    const { port } = new URL(apis[index].url);
    apis[index] = await startApiProcess({ env: { ...stack.env, PORT: port } });
  };
  return {
    env: stack.env,
    apis,
    inSql,
    faults: {
      'an API is killed': () => restartApi(anyApi(), 'SIGKILL'),
      'an API is stopped in good order': () => restartApi(anyApi(), 'SIGTERM'),
      'an API stands still': async () => {
        const api = apis[anyApi()];
        api.kill('SIGSTOP');
        await delay(random.between(100, 7_000));
        api.kill('SIGCONT');
      },
      'Postgres is killed': async () => {
        await postgres.crash(random.pick(['SIGKILL', 'SIGQUIT'] as const));
        await delay(random.between(0, 3_000));
        await postgres.restart();
      },
      'all sessions are terminated': () => inSql(terminateSessions),
      'every consumer is locked': () =>
        inSql((sql) => lockConsumers(sql, random.between(100, 7_000))),
      'Temporal is killed': async () => {
        await temporal.crash();
        await delay(random.between(0, 5_000));
        await temporal.restart();
      },
      'the worker is killed': async () => {
        worker.kill('SIGKILL');
        await worker.exited;
        worker = await startWorkerProcess({ env: stack.env });
      },
    },
    close: async () => {
      await Promise.all([...apis, worker].map((server) => server.stop()));
      await stack.stop();
      await temporal.remove();
      await postgres.remove();
    },
  };
}

async function withClient<T>(url: string, work: (sql: Client) => Promise<T>): Promise<T> {
  const sql = new Client({ connectionString: url });
  sql.on('error', () => {});
  await sql.connect();
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

async function terminateSessions(sql: Client): Promise<void> {
  await sql.query(`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
  `);
}

async function lockConsumers(sql: Client, durationMs: number): Promise<void> {
  await sql.query('begin');
  await sql.query('select from farebox.consumers order by ledger, id for update');
  await delay(durationMs);
  await sql.query('rollback');
}
