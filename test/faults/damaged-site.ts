/**
 * A complete site on a Postgres of its own, whose disk is small enough to be filled and whose connections are
 * few enough to be taken; the API's event loop can be stalled, and the clocks of API and worker stepped.
 *
 * A full disk needs a small file system, so only root can have one; false clocks need libfaketime (Debian's package).
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startOwnPostgres } from '../support/own-servers.ts';
import { openLinedSite, type LinedSite, type Trial } from './lined-site.ts';
import { findFaketime, partTrials, setClock, STALL_MS } from './part-trials.ts';

const DISK = '500m';
/** So few that all can be taken. */
const CONNECTIONS = '60';
const STALLABLE = join(import.meta.dirname, '../support/stallable-loop.ts');

const run = promisify(execFile);

export interface DamagedSite {
  readonly site: LinedSite;
  readonly hasClocks: boolean;
  /** Faults of the parts; each lasts so long, unless it has a time of its own. */
  trials(lastsMs: number): readonly Trial[];
  close(): Promise<void>;
}

/** `recoveryMsMax`: how soon charges and top-ups have to work again after a trial. */
export async function openDamagedSite({
  seed,
  recoveryMsMax,
  pauseMs,
  trialsMax,
}: {
  readonly seed: number;
  readonly recoveryMsMax: number;
  readonly pauseMs?: number;
  readonly trialsMax?: number;
}): Promise<DamagedSite> {
  const isRoot = process.getuid?.() === 0;
  const disk = await mkdtemp(join(tmpdir(), 'farebox-disk-'));
  const undo: (() => Promise<unknown>)[] = [() => rm(disk, { recursive: true, force: true })];
  const close = async () => {
    for (const step of undo.toReversed()) await step();
  };
  try {
    if (isRoot) {
      await run('mount', ['-t', 'tmpfs', '-o', `size=${DISK},mode=755`, 'tmpfs', disk]);
      undo.push(() => run('umount', [disk]));
    }
    const faketime = await findFaketime();
    const clockFile = faketime && join(disk, 'clock');
    if (clockFile) await setClock(clockFile, '+0');
    const folder = join(disk, 'server');
    await mkdir(folder, { mode: 0o755 });
    const settings = { max_connections: CONNECTIONS, max_wal_size: '64MB', shared_buffers: '32MB' };
    const postgres = await startOwnPostgres(settings, folder);
    undo.push(() => postgres.remove());
    const site = await openLinedSite({
      seed,
      recoveryMsMax,
      pauseMs,
      trialsMax,
      databaseUrl: postgres.url,
      env: {
        NODE_OPTIONS: `--import=${STALLABLE}`,
        STALL_MS: String(STALL_MS),
        ...(clockFile && {
          LD_PRELOAD: faketime,
          FAKETIME_TIMESTAMP_FILE: clockFile,
          FAKETIME_NO_CACHE: '1',
          FAKETIME_DONT_FAKE_MONOTONIC: '1',
        }),
      },
    });
    undo.push(() => site.close());
    const damageable = { ...postgres, disk: isRoot ? disk : undefined };
    return {
      site,
      hasClocks: clockFile !== undefined,
      trials: (lastsMs) => partTrials(damageable, clockFile, lastsMs),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
