/** The step that makes partitions ahead: it makes what is missing, so it is safe to run twice or at once. */
import { ensureChargePartitions } from '../src/store/charges/partitions.ts';

export type PartitionActivities = ReturnType<typeof createPartitionActivities>;

export function createPartitionActivities({ databaseUrl }: { readonly databaseUrl: string }) {
  return {
    /** The names of those that it made. */
    async ensurePartitions(): Promise<readonly string[]> {
      const { made, putOff } = await ensureChargePartitions(databaseUrl, Date.now());
      if (putOff.length > 0) throw new Error(`waiting for a quiet moment: ${putOff.join(', ')}`);
      return made;
    },
  };
}
