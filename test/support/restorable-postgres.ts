/**
 * A PostgreSQL that archives its WAL, with a base backup made over SQL, which needs none of PostgreSQL's programs:
 * it can be put back to any moment since that backup.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { newDataFolder } from './data-folder.ts';
import { choosePort } from './ports.ts';
import { startPostgres } from '../../src/embedded/postgres.ts';
import { copyMigrated } from './own-servers.ts';
import { until } from './stack.ts';
import { read } from '../tree/sources.ts';

/** That of docs/operations.md, with another folder for the archive. */
export function documentedArchiveCommand(archive: string): string {
  const [, command] = /^archive_command = '(.+)'$/m.exec(read('docs/operations.md')) ?? [];
  assert.ok(command);
  return command.replaceAll('/backups/wal', archive);
}

const run = promisify(execFile);

interface Restore {
  readonly dataDir: string;
  readonly backup: string;
  readonly archive: string;
  /** Undefined for everything in the archive. */
  readonly moment: string | undefined;
  /** Whether an earlier restore began with the same backup. */
  readonly isRepeated: boolean;
}

/** The commands of docs/restore.md that put a base backup in the place of the data directory. */
function documentedRestore({ dataDir, backup, archive, moment, isRepeated }: Restore): string {
  const block = blockOf('sh', 'recovery.signal');
  const target = /^recovery_target_time = '.+'$/m;
  const again = /`(recovery_target_timeline = 'current')`/.exec(read('docs/restore.md'))?.[1];
  assert.match(block, target);
  const commands = block
    .replaceAll('/backups/wal', archive)
    .replaceAll(/\/backups\/base-[-\w]+/g, backup)
    .replace(target, moment ? `recovery_target_time = '${moment}'` : '');
  const inTurn = isRepeated
    ? commands.replace(/^mv .+$/m, 'rm -r "$PGDATA"').replace(/^END$/m, `${again ?? ''}\nEND`)
    : commands;
  return `set -e\nPGDATA=${dataDir}\nrm -rf "$PGDATA.damaged"\n${inTurn}`;
}

/** The statements that docs/restore.md has before the next base backup. */
function documentedResets(): string[] {
  return blockOf('sql', 'recovery_target_time').split('\n');
}

/** The block of docs/restore.md with this text, without the indentation of its step. */
function blockOf(language: string, text: string): string {
  const page = read('docs/restore.md');
  const blocks = [...page.matchAll(/^( *)```(\w+)\n(.*?)^ *```$/gms)];
  const [, indentation, , block] =
    blocks.find((found) => found[2] === language && found[3]?.includes(text)) ?? [];
  assert.ok(block, `a block with ${text}`);
  return block.trimEnd().replaceAll(new RegExp(`^${indentation}`, 'gm'), '');
}

export type RestorablePostgres = Awaited<ReturnType<typeof startRestorablePostgres>>;

/** At the newest schema. */
export async function startRestorablePostgres() {
  const folder = await newDataFolder('farebox-restore-');
  const archive = join(folder, 'wal');
  const dataDir = join(folder, 'postgres');
  await mkdir(archive);
  // PostgreSQL may run as another user.
  await chmod(archive, 0o777);
  const passwords = await copyMigrated(dataDir);
  const port = await choosePort();
  const start = () =>
    startPostgres({
      dataDir,
      logFile: `${dataDir}.log`,
      env: process.env,
      port,
      passwords,
      settings: {
        fsync: 'off',
        archive_mode: 'on',
        archive_command: documentedArchiveCommand(archive),
      },
    });
  let backups = 0;
  let backup = '';
  let isRepeated = false;
  let running = await start();

  async function asSuperuser<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const client = new Client({ connectionString: running.superuserUrl });
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  }

  return {
    url: running.url,

    /** A base backup, while it runs. The next restores begin with it. */
    backUp: () =>
      asSuperuser(async (client) => {
        backups += 1;
        backup = join(folder, `base-${backups}`);
        isRepeated = false;
        await client.query(`select pg_backup_start('test', true)`);
        await cp(dataDir, backup, {
          recursive: true,
          filter: (path) => {
            const name = relative(dataDir, path);
            return !name.startsWith('pg_wal/') && !name.startsWith('postmaster.');
          },
        });
        const { rows } = await client.query<{ labelfile: string }>(
          'select labelfile from pg_backup_stop()',
        );
        await writeFile(join(backup, 'backup_label'), rows[0]?.labelfile ?? '');
        await chmod(backup, 0o700);
      }),

    /** The settings that a restore leaves, which the next base backup also has. */
    restoreSettings: () =>
      asSuperuser((client) =>
        valueOf(
          client,
          `(select string_agg(name, ', ') from pg_file_settings
            where name = 'restore_command' or name like 'recovery%')`,
        ),
      ),

    /** Resets them, as docs/restore.md says. */
    resetRestoreSettings: () =>
      asSuperuser(async (client) => {
        for (const statement of documentedResets()) await client.query(statement);
      }),

    /** A moment to restore to: what was committed before it is there again, and nothing else. */
    moment: () => asSuperuser((client) => valueOf(client, 'clock_timestamp()::text')),

    /**
     * Archives the last of the WAL, stops, and starts at the same address with the data of that moment; without one,
     * with all of the archive.
     */
    async restoreTo(moment?: string): Promise<void> {
      await asSuperuser(async (client) => {
        const last = await valueOf(client, 'pg_walfile_name(pg_switch_wal())');
        await until(
          async () =>
            (await valueOf(client, `(select last_archived_wal from pg_stat_archiver)`)) >= last,
        );
      });
      await running.stop();
      await run('sh', ['-c', documentedRestore({ dataDir, backup, archive, moment, isRepeated })]);
      isRepeated = true;
      running = await start();
    },

    async remove(): Promise<void> {
      await running.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function valueOf(client: Client, expression: string): Promise<string> {
  const { rows } = await client.query<{ value: string | null }>(`select ${expression} as value`);
  return rows[0]?.value ?? '';
}
