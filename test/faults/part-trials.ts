/** Faults of the parts themselves: what callers may see while a disk is full, a clock is wrong, or a process hangs. */
import { constants } from 'node:fs';
import { access, open, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { until } from '../support/stack.ts';
import type { Trial } from './lined-site.ts';
import { OUTAGE } from './line-trials.ts';

export interface DamageablePostgres {
  readonly url: string;
  readonly superuserUrl: string;
  /** A folder on its disk, where that is small enough to be filled. */
  readonly disk: string | undefined;
  hasEnded(): boolean;
  restart(): Promise<void>;
}

export const STALL_MS = 4_000;
const STOP_MS = 5_000;
/**
 * What a quota of a container does to a process that has used it up: it runs so long in each period, and then
 * not at all.
 */
const QUOTA_MS = { period: 100, runs: 10 };
const DISK_STEP_BYTES = 1_000_000;

/** `clockFile` is read by libfaketime in the API and the worker; undefined where the library is missing. */
export function partTrials(
  postgres: DamageablePostgres,
  clockFile: string | undefined,
  lastsMs: number,
): readonly Trial[] {
  return [
    ...(postgres.disk === undefined ? [] : [fullDisk(postgres, postgres.disk, lastsMs)]),
    {
      name: 'Postgres: all of its connections are taken',
      seen: OUTAGE,
      lastsMs,
      begin: async () => {
        const taken = await takeConnections(postgres);
        return async () => {
          await Promise.all(taken.map((client) => client.end()));
        };
      },
    },
    {
      name: 'API: a table is locked until all of its connections wait',
      seen: OUTAGE,
      lastsMs,
      begin: async () => {
        const sql = await connected(postgres.url);
        await sql.query('begin');
        await sql.query('lock table farebox.api_keys, farebox.consumers in access exclusive mode');
        return () => sql.end();
      },
    },
    {
      name: `API: its event loop stalls for ${STALL_MS / 1_000} s`,
      seen: OUTAGE,
      lastsMs: STALL_MS,
      begin: ({ api }) => {
        api.kill('SIGURG');
        return () => {};
      },
    },
    ...(['api', 'worker'] as const).map((part): Trial => ({
      name: `${part === 'api' ? 'API' : 'worker'}: stopped by SIGSTOP`,
      seen: part === 'api' ? OUTAGE : [],
      lastsMs: STOP_MS,
      begin: (site) => {
        site[part].kill('SIGSTOP');
        return () => site[part].kill('SIGCONT');
      },
    })),
    {
      name: 'API and worker: a quota of a tenth of a CPU',
      seen: OUTAGE,
      lastsMs,
      begin: ({ api, worker }) => {
        const signal = (name: NodeJS.Signals) => [api, worker].forEach((each) => each.kill(name));
        let stopping: NodeJS.Timeout | undefined;
        const running = setInterval(() => {
          signal('SIGCONT');
          stopping = setTimeout(() => signal('SIGSTOP'), QUOTA_MS.runs);
        }, QUOTA_MS.period);
        return () => {
          clearInterval(running);
          clearTimeout(stopping);
          signal('SIGCONT');
        };
      },
    },
    ...(clockFile === undefined ? [] : ['+1h', '-1h', '+2d', '-2d']).map((step): Trial => ({
      name: `API and worker: their clocks step by ${step}`,
      seen: OUTAGE,
      lastsMs,
      begin: async () => {
        await setClock(clockFile ?? '', step);
        return () => setClock(clockFile ?? '', '+0');
      },
    })),
  ];
}

function fullDisk(postgres: DamageablePostgres, disk: string, lastsMs: number): Trial {
  return {
    name: 'Postgres: its disk is full',
    seen: OUTAGE,
    lastsMs,
    begin: async () => {
      const full = join(disk, 'full');
      await fill(full);
      return async () => {
        await rm(full);
        // Without space for its log, Postgres ends, and has to be started again.
        if (postgres.hasEnded()) await postgres.restart();
      };
    },
  };
}

/** The file is replaced as a whole, so that nobody reads half of it. */
export async function setClock(file: string, step: string): Promise<void> {
  await writeFile(`${file}.new`, step);
  await rename(`${file}.new`, file);
}

export async function findFaketime(): Promise<string | undefined> {
  for (const folder of ['x86_64-linux-gnu', 'aarch64-linux-gnu']) {
    const file = `/usr/lib/${folder}/faketime/libfaketime.so.1`;
    const isThere = await access(file, constants.R_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return file;
  }
  return undefined;
}

/** Until nothing more fits. */
async function fill(file: string): Promise<void> {
  const handle = await open(file, 'w');
  const piece = Buffer.alloc(DISK_STEP_BYTES);
  try {
    for (let bytes = DISK_STEP_BYTES; bytes >= 4_096;) {
      const isFull = await handle.write(piece, 0, bytes).then(
        () => false,
        () => true,
      );
      if (isFull) bytes = Math.floor(bytes / 2);
    }
  } finally {
    await handle.close();
  }
}

/** Ends all sessions and takes their places, as often as they come back. */
async function takeConnections({ url, superuserUrl }: DamageablePostgres): Promise<Client[]> {
  const taken: Client[] = [];
  const takeOne = () =>
    connected(url).then(
      (client) => taken.push(client),
      () => 0,
    );
  const sql = await connected(superuserUrl);
  await until(async () => {
    const pids = await Promise.all(
      taken.map(async (client) => {
        const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
        return rows[0]?.pid;
      }),
    );
    const { rowCount } = await sql.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where backend_type = 'client backend' and pid <> pg_backend_pid() and pid <> all ($1)`,
      [pids],
    );
    await Promise.all(Array.from({ length: (rowCount ?? 0) + 2 }, takeOne));
    await delay(10);
    return rowCount === 0;
  });
  await sql.end();
  return taken;
}

async function connected(connectionString: string): Promise<Client> {
  const client = new Client({ connectionString });
  client.on('error', () => {});
  await client.connect();
  return client;
}
