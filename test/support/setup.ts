/**
 * Once for the whole run, before any test: the program that tests start as processes, a PostgreSQL with a template
 * database at the newest schema, and a Temporal server. Their addresses go into the environment, which mocha's workers
 * inherit. Each stack (stack.ts) then has its own database, simulator and namespace.
 */
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { Client } from 'pg';
import type { Child } from '../../src/embedded/child.ts';
import { randomPasswords } from '../../src/embedded/data-dir.ts';
import { newDataFolder } from './data-folder.ts';
import { forgetLogs, logTails, reportFailure } from './failure-report.ts';
import { cachedProgram } from '../../scripts/build-program.ts';
import { findLeaks } from './leaks.ts';
import { LEAN_TEMPORAL } from './lean-temporal.ts';
import { choosePort } from './ports.ts';
import { startPostgres, type Postgres } from '../../src/embedded/postgres.ts';
import { findTemporal } from '../../src/embedded/temporal-binary.ts';
import { deleteSchedules } from './stack.ts';
import { startTemporal } from '../../src/embedded/temporal.ts';
import { ensureChargePartitions } from '../../src/store/charges/partitions.ts';
import { migrate } from '../../src/store/migrations.ts';

const TEMPLATE = 'farebox_started';

/** For logs and programs; and for the data of servers. */
let folder: string | undefined;
let dataFolder: string | undefined;
const started: Child[] = [];

const unhandled: unknown[] = [];

/**
 * Mocha ignores rejections that nobody handles, although Node would end a process of ours, or of a user of
 * the client. They are reported after the last test of a file, or of a run that is not parallel: a hook that
 * fails between tests would end the run.
 */
export const mochaHooks = {
  beforeAll(): void {
    process.on('unhandledRejection', (reason) => unhandled.push(reason));
  },
  afterEach(this: Mocha.Context): void {
    if (this.currentTest?.state === 'failed') reportFailure(this.currentTest, logTails());
  },
  async afterAll(): Promise<void> {
    forgetLogs();
    // It only saves time.
    await deleteSchedules().catch(() => {});
    const [first] = unhandled.splice(0);
    if (first !== undefined) throw new Error(`a rejection was not handled: ${inspect(first)}`);
  },
};

export async function mochaGlobalSetup(): Promise<void> {
  // Before anything is made or started: sources that are being edited may not build.
  const program = await cachedProgram();
  folder = await mkdtemp(join(tmpdir(), 'farebox-test-'));
  dataFolder = await newDataFolder('farebox-test-data-');
  preferServers();
  const servers = [
    preparePostgres(folder, dataFolder),
    prepareTemporal(folder, dataFolder),
  ] as const;
  const [postgres, temporal] = await Promise.all(servers).catch(async (error: unknown) => {
    await mochaGlobalTeardown();
    throw error;
  });
  setPriority(constants.priority.PRIORITY_NORMAL);
  Object.assign(process.env, {
    TEST_FOLDER: folder,
    TEST_PROGRAM: program,
    TEST_DATA_FOLDER: dataFolder,
    TEST_POSTGRES_URL: postgres.url,
    TEST_POSTGRES_TEMPLATE: TEMPLATE,
    TEST_POSTGRES_SUPERUSER_URL: postgres.superuserUrl,
    TEST_TEMPORAL_ADDRESS: temporal.address,
    TEST_TEMPORAL_UI_URL: temporal.uiUrl,
    TEST_TEMPORAL_PROGRAM: temporal.program,
  });
}

export async function mochaGlobalTeardown(): Promise<void> {
  await Promise.all(started.map((child) => child.stop()));
  if (!folder || !dataFolder) return;
  const leaks = await findLeaks(folder, dataFolder);
  await rm(folder, { recursive: true, force: true });
  await rm(dataFolder, { recursive: true, force: true });
  if (leaks.length > 0) throw new Error(`secrets leaked:\n${leaks.join('\n')}`);
}

/**
 * The servers that are started from now on come first, if we may: all tests wait for them, and of two cores with
 * twenty busy processes they would get a tenth.
 */
function preferServers(): void {
  try {
    setPriority(constants.priority.PRIORITY_HIGH);
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_SYSTEM_ERROR') throw error;
  }
}

/**
 * Where the kernel schedules by session first (`sched_autogroup_enabled`, the default of many Linux systems), a
 * priority counts within a session only, and each of our children has one of its own: then its session comes first.
 */
function preferSession({ pid }: Child): void {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(constants.priority.PRIORITY_HIGHEST));
  } catch {
    // Not root, or a system without such groups.
  }
}

/** With a database as migrations leave it, and one as a start leaves it; stack.ts copies them. */
async function preparePostgres(folder: string, dataFolder: string): Promise<Postgres> {
  const postgres = await startPostgres({
    dataDir: join(dataFolder, 'postgres'),
    logFile: join(folder, 'postgres.log'),
    env: process.env,
    port: await choosePort(),
    passwords: randomPasswords(),
    settings: {
      // Tests kill processes, not machines: what a process wrote survives that without fsync.
      fsync: 'off',
      max_connections: '300',
      // They connect thousands of times, and nobody attacks their passwords.
      scram_iterations: '1',
    },
  });
  started.push(postgres);
  preferSession(postgres);
  await migrate(postgres.url);
  const superuser = new Client({ connectionString: postgres.superuserUrl });
  await superuser.connect();
  await superuser.query(`create database ${TEMPLATE} owner farebox template farebox`);
  await superuser.end();
  // Otherwise each start on a copy would create them, which takes three times the CPU time of the copy.
  await ensureChargePartitions(
    Object.assign(new URL(postgres.url), { pathname: TEMPLATE }).href,
    'now',
  );
  return postgres;
}

async function prepareTemporal(
  folder: string,
  dataFolder: string,
): Promise<{ address: string; uiUrl: string; program: string }> {
  const program = await findTemporal(process.env, () => {});
  const temporal = await startTemporal({
    program,
    dataDir: join(dataFolder, 'temporal'),
    logFile: join(folder, 'temporal.log'),
    env: process.env,
    port: await choosePort(),
    uiPort: await choosePort(),
    ...LEAN_TEMPORAL,
    settings: {
      ...LEAN_TEMPORAL.settings,
      // Tests start steps by hand, like an attacker would on a server that others use.
      'activity.enableStandalone': 'true',
    },
  });
  started.push(temporal);
  preferSession(temporal);
  return { address: temporal.address, uiUrl: temporal.uiUrl, program };
}
