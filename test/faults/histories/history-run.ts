/**
 * One recorded run: two API processes over one database, clients of a few consumers, and faults on the lines
 * between API and Postgres. Four witnesses judge it afterwards: the answers by themselves, the checker of
 * histories, the stored charges, and `farebox doctor`.
 */
import { join } from 'node:path';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { uuidOf, wireId } from '../../../src/domain/ids.ts';
import { examineLedger, LEDGER_PARTS } from '../../../src/store/doctor/ledger-checks.ts';
import { createDatabase } from '../../../src/store/database.ts';
import { createTestAccounts, type TestAccount } from '../../support/accounts.ts';
import { startFaultyLine, type FaultyLine } from '../../support/faulty-line.ts';
import { Random } from '../../support/random.ts';
import {
  createTestDatabase,
  startApiProcess,
  until,
  WITHOUT_RATE_LIMITS,
  type Environment,
  type ServerProcess,
} from '../../support/stack.ts';
import { testSideOf } from '../../support/test-mode.ts';
import { apply, newLedger } from './ledger-model.ts';
import { checkHistory } from './linearizable.ts';
import type { PlantedBug } from './planted-bugs.ts';
import { Workload } from './workload.ts';

const ROOT = join(import.meta.dirname, '../../..');
const PRELOAD = join(ROOT, 'test/support/planted-bug.ts');
/** From the source, in which a bug can be planted. */
const startOne = (env: Environment) => startApiProcess({ env, program: join(ROOT, 'src/cli.ts') });
/** A planted bug changes the schema by design, so that part of doctor proves nothing. */
const DOCTORS_PARTS = LEDGER_PARTS.filter((part) => part !== 'schema');

export interface HistoryRunOptions {
  readonly seed: number;
  readonly consumers: number;
  readonly clientsEach: number;
  readonly stepsEach: number;
  /** Also kill API processes, which takes longer. */
  readonly kills: boolean;
  readonly bug?: PlantedBug | undefined;
}

export type Witness = 'answers' | 'checker' | 'ledger' | 'doctor';

export interface HistoryRun {
  readonly operations: number;
  readonly byKind: Readonly<Record<string, number>>;
  readonly answers: Readonly<Record<string, number>>;
  readonly faults: number;
  /** What each witness found; none for a correct service. */
  readonly found: Readonly<Partial<Record<Witness, string>>>;
}

export async function recordHistories(options: HistoryRunOptions): Promise<HistoryRun> {
  const random = new Random(options.seed);
  const testDatabase = await createTestDatabase();
  const direct = new URL(testDatabase.url);
  const line = await startFaultyLine({ host: direct.hostname, port: Number(direct.port) }, () =>
    random.next(),
  );
  const sql = new Client({ connectionString: testDatabase.url });
  await sql.connect();
  const apis: ServerProcess[] = [];
  try {
    const { bug } = options;
    for (const statement of await sqlOf(bug)) await sql.query(statement);
    direct.port = String(line.port);
    const env: Environment = {
      DATABASE_URL: direct.href,
      // An address where nothing listens.
      TEMPORAL_ADDRESS: '127.0.0.1:9',
      STRIPE_API_BASE: 'http://127.0.0.1:9',
      STRIPE_SECRET_KEY: 'sk_test_none',
      STRIPE_WEBHOOK_SECRET: 'whsec_none',
      MASTER_SECRET: 'of the tests of recorded histories',
      ...WITHOUT_RATE_LIMITS,
      ...(bug?.in === 'code' && {
        NODE_OPTIONS: `--import=${PRELOAD}`,
        PLANTED_BUG: JSON.stringify(bug),
      }),
    };
    apis.push(...(await Promise.all([startOne(env), startOne(env)])));
    const api = apis[0] as ServerProcess;
    const live = await createTestAccounts(testDatabase.url, options.consumers, 0);
    const workloads: Workload[] = [];
    const accounts: TestAccount[] = [];
    for (const account of live) {
      const side = await testSideOf(api, testDatabase.url, account);
      accounts.push(side);
      workloads.push(new Workload(apis, side, random));
    }
    let isOver = false;
    const faults = disturb({ line, sql, random, apis, env, ...options }, () => isOver);
    const acting = Promise.all(
      workloads.map(async (workload) => {
        await workload.begin();
        const clients = Array.from({ length: options.clientsEach }, () =>
          workload.act(options.stepsEach),
        );
        await Promise.all(clients);
      }),
    ).finally(() => {
      isOver = true;
    });
    // If one fails, the other still ends before its connections do.
    await Promise.allSettled([acting, faults]);
    await acting;
    const faultCount = await faults;
    await until(async () => (await countRunning(sql)) === 0);
    for (const { requests } of workloads) await requests.resolve();
    for (const workload of workloads) await workload.readBalance();
    const all = workloads.flatMap(({ requests }) => requests.operations);
    return {
      operations: all.length,
      byKind: countBy(all.map(({ effect }) => effect.kind)),
      answers: sumOf(workloads.map(({ requests }) => requests.answers)),
      faults: faultCount,
      found: {
        ...found(
          'answers',
          workloads.flatMap(({ requests }) => requests.violations),
        ),
        ...found('checker', workloads.flatMap(findNoOrder)),
        ...found('ledger', await compareRows(sql, accounts, workloads)),
        ...found('doctor', await findingsOfDoctor(testDatabase.url)),
      },
    };
  } finally {
    await Promise.all(apis.map((api) => api.stop()));
    await sql.end();
    await line.stop();
    await testDatabase.drop();
  }
}

interface Disturbed extends HistoryRunOptions {
  readonly line: FaultyLine;
  readonly sql: Client;
  readonly random: Random;
  readonly apis: ServerProcess[];
  readonly env: Environment;
}

/** One fault after another, with pauses. Resolves with their number when it is over. */
async function disturb(
  { line, sql, random, apis, env, kills }: Disturbed,
  isOver: () => boolean,
): Promise<number> {
  const anyApi = () => random.between(0, apis.length - 1);
  const faults: Record<string, () => Promise<unknown>> = {
    resets: async () => line.damage({ kind: 'resetting', part: 0.05 }),
    silence: async () => line.damage({ kind: 'silent' }),
    lostAnswers: async () => line.damage({ kind: 'half_open' }),
    cut: async () => line.damage({ kind: 'cut' }),
    late: async () => line.damage({ kind: 'delayed', ms: 40 }),
    ended: () =>
      sql.query(`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
      `),
    ...(kills && {
      kill: async () => {
        const index = anyApi();
        const victim = apis[index] as ServerProcess;
        victim.kill('SIGKILL');
        await victim.exited;
        apis[index] = await startOne({ ...env, PORT: new URL(victim.url).port });
      },
      standstill: async () => {
        const victim = apis[anyApi()] as ServerProcess;
        victim.kill('SIGSTOP');
        await delay(random.between(100, 1_000));
        victim.kill('SIGCONT');
      },
    }),
  };
  let count = 0;
  while (!isOver()) {
    await delay(random.between(100, 800));
    await faults[random.pick(Object.keys(faults))]?.();
    await delay(random.between(20, 200));
    line.mend();
    count += 1;
  }
  return count;
}

function findNoOrder({ requests }: Workload): string[] {
  const { operations } = requests;
  const { isLinearizable, ordered, stuckAt } = checkHistory(operations, newLedger(0), apply);
  if (isLinearizable) return [];
  const next = stuckAt.slice(0, 3).map(({ effect }) => JSON.stringify(effect));
  return [`no order: after ${ordered} of ${operations.length} operations, ${next.join(' or ')}`];
}

/** Statements of API processes, also of those that were killed. */
async function countRunning(sql: Client): Promise<number> {
  const { rows } = await sql.query<{ count: number }>(`
    select count(*)::int as count from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'
  `);
  return rows[0]?.count ?? 0;
}

/** Every charge and hold that was answered is stored, and no other. */
async function compareRows(
  sql: Client,
  accounts: readonly TestAccount[],
  workloads: readonly Workload[],
): Promise<string[]> {
  const { rows } = await sql.query<{ kind: 'charge' | 'hold'; id: string; micros: number }>(
    `select 'charge' as kind, id, amount_micros::int as micros from farebox.charges where consumer_id = any($1)
     union all select 'hold', id, amount_micros::int from farebox.holds where consumer_id = any($1)`,
    [accounts.map(({ consumerId }) => uuidOf('consumer', consumerId))],
  );
  const stored = new Map(rows.map(({ kind, id, micros }) => [wireId(kind, id), micros]));
  const answered = new Map(
    workloads
      .flatMap(({ requests }) => requests.operations)
      .flatMap(({ effect }) =>
        effect.kind === 'charge' || effect.kind === 'hold' || effect.kind === 'capture'
          ? [[effect.id, effect.micros] as const]
          : [],
      ),
  );
  const lost = [...answered].filter(([id, micros]) => stored.get(id) !== micros);
  const extra = [...stored.keys()].filter((id) => !answered.has(id));
  return [
    ...lost.map(([id]) => `${id} was answered and is not stored`),
    ...extra.map((id) => `${id} is stored and was never answered`),
  ];
}

async function findingsOfDoctor(url: string): Promise<string[]> {
  const database = await createDatabase(url, { maxPoolSize: 1, onError: () => {} });
  try {
    const findings = await examineLedger(database, { parts: DOCTORS_PARTS });
    return findings.map(({ check, detail }) => `${check}: ${detail}`);
  } finally {
    await database.end();
  }
}

/** The statements that plant it: its own, and a function whose text differs in one passage. */
async function sqlOf(bug: PlantedBug | undefined): Promise<readonly string[]> {
  if (!bug || bug.in === 'code') return bug?.before ?? [];
  const file = join(ROOT, 'migrations/functions', bug.file);
  const parts = (await readFile(file, 'utf8')).split(bug.from);
  if (parts.length !== 2) throw new Error(`${bug.file} has the passage ${parts.length - 1} times`);
  return [...bug.before, parts.join(bug.to)];
}

function found(witness: Witness, what: readonly string[]): HistoryRun['found'] {
  return what[0] === undefined ? {} : { [witness]: what[0] };
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function sumOf(maps: readonly ReadonlyMap<string, number>[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [name, count] of maps.flatMap((map) => [...map]))
    sums[name] = (sums[name] ?? 0) + count;
  return sums;
}
