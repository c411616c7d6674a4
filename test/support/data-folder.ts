/**
 * A folder for the data of the tests' servers. `npm test` asks for one in memory (TEST_IN_MEMORY): a run makes some two
 * hundred databases of five hundred files each, and a disk may take half a millisecond of CPU for each file.
 * Temporal and the simulator sync each commit, which takes milliseconds on a disk.
 */
import { mkdtemp, statfs } from 'node:fs/promises';
import { availableMemory } from 'node:process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Linux's file system in memory. Containers often have only 64 MiB of it. */
const MEMORY = '/dev/shm';
/** Enough for a run, which has some 250 MiB of databases at once, up to 2 GiB of their log, and Temporal's file. */
const ROOM_BYTES = 4 * 2 ** 30;

export async function newDataFolder(prefix: string): Promise<string> {
  const isWanted = process.env['TEST_IN_MEMORY'] === 'true' && (await hasRoom());
  return mkdtemp(join(isWanted ? MEMORY : tmpdir(), prefix));
}

async function hasRoom(): Promise<boolean> {
  const room = await statfs(MEMORY).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  // The processes of a run need memory, too.
  return room >= ROOM_BYTES && availableMemory() >= 2 * ROOM_BYTES;
}
