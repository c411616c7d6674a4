/**
 * The step that creates partitions ahead of time. It creates missing ones only, so it is safe to repeat or
 * run concurrently.
 */
import { ensureChargePartitions } from '../src/store/charges/partitions.ts';

export type EnsurePartitionsActivities = ReturnType<typeof createEnsurePartitionsActivities>;

export function createEnsurePartitionsActivities({
  databaseUrl,
}: {
  readonly databaseUrl: string;
}) {
  return {
    /** Returns the names of the partitions that it created. */
    async ensurePartitions(): Promise<readonly string[]> {
      const { made, putOff } = await ensureChargePartitions(databaseUrl, 'now');
      if (putOff.length > 0)
        throw new Error(`could not create partitions under load: ${putOff.join(', ')}`);
      return made;
    },
  };
}
