/**
 * A PostgreSQL that archives its WAL, with a base backup made over SQL, which needs none of PostgreSQL's programs:
 * it can be put back to any moment since that backup.
 */
import assert from 'node:assert/strict';
import { chmod, cp, mkdir, rm, writeFile, appendFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
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

export type RestorablePostgres = Awaited<ReturnType<typeof startRestorablePostgres>>;

/** At the newest schema. */
export async function startRestorablePostgres() {
  const folder = await newDataFolder('farebox-restore-');
  const archive = join(folder, 'wal');
  const backup = join(folder, 'backup');
  await mkdir(archive);
  // PostgreSQL may run as another user.
  await chmod(archive, 0o777);
  const passwords = await copyMigrated(join(folder, 'postgres'));
  const port = await choosePort();
  const start = (name: string) =>
    startPostgres({
      dataDir: join(folder, name),
      logFile: join(folder, `${name}.log`),
      env: process.env,
      port,
      passwords,
      settings: {
        fsync: 'off',
        archive_mode: 'on',
        archive_command: documentedArchiveCommand(archive),
      },
    });
  let dataDir = 'postgres';
  let restores = 0;
  let running = await start(dataDir);

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

    /** A base backup, while it runs. */
    backUp: () =>
      asSuperuser(async (client) => {
        const from = join(folder, dataDir);
        await client.query(`select pg_backup_start('test', true)`);
        await cp(from, backup, {
          recursive: true,
          filter: (path) => {
            const name = relative(from, path);
            return !name.startsWith('pg_wal/') && !name.startsWith('postmaster.');
          },
        });
        const { rows } = await client.query<{ labelfile: string }>(
          'select labelfile from pg_backup_stop()',
        );
        await writeFile(join(backup, 'backup_label'), rows[0]?.labelfile ?? '');
      }),

    /** A moment to restore to: what was committed before it is there again, and nothing else. */
    moment: () => asSuperuser((client) => valueOf(client, 'clock_timestamp()::text')),

    /** Archives the last of the WAL, stops, and starts at the same address with the data of that moment. */
    async restoreTo(moment: string): Promise<void> {
      await asSuperuser(async (client) => {
        const last = await valueOf(client, 'pg_walfile_name(pg_switch_wal())');
        await until(
          async () =>
            (await valueOf(client, `(select last_archived_wal from pg_stat_archiver)`)) >= last,
        );
      });
      await running.stop();
      restores += 1;
      dataDir = `restored-${restores}`;
      const restored = join(folder, dataDir);
      await cp(backup, restored, { recursive: true });
      await chmod(restored, 0o700);
      await appendFile(
        join(restored, 'postgresql.auto.conf'),
        [
          `restore_command = 'cp ${archive}/%f %p'`,
          `recovery_target_time = '${moment}'`,
          `recovery_target_action = 'promote'`,
          // That of the backup, not of an earlier restore.
          `recovery_target_timeline = 'current'\n`,
        ].join('\n'),
      );
      await writeFile(join(restored, 'recovery.signal'), '');
      running = await start(dataDir);
    },

    async remove(): Promise<void> {
      await running.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function valueOf(client: Client, expression: string): Promise<string> {
  const { rows } = await client.query<{ value: string }>(`select ${expression} as value`);
  return rows[0]?.value ?? '';
}
