/**
 * Releases the open holds of spend keys that have ended, each as its developer would, through the lanes of holds. One that
 * is captured meanwhile is paid: whichever locks the hold first wins.
 */
import { releaseEntry } from '../../../charging/hold-entries.ts';
import type { ConsumerRef } from '../../../store/balance/consumers.ts';
import { listOpenHolds, type HoldsOf } from '../../../store/budgets/open-holds.ts';
import type { Api } from '../../services.ts';

/** Held at once in memory, and in the queue of a lane. */
const AT_ONCE = 200;

export async function releaseOpenHolds(
  api: Api,
  consumer: ConsumerRef,
  which: HoldsOf,
): Promise<void> {
  let afterId: string | undefined;
  do {
    const open = await listOpenHolds(api.database, consumer, which, { limit: AT_ONCE, afterId });
    await Promise.all(
      open.map(({ id: holdId, developerId, developerNumber }) =>
        api.holds.post(
          releaseEntry({
            developer: { developerId, developerNumber },
            holdId,
            idempotencyKey: undefined,
          }),
        ),
      ),
    );
    afterId = open.length === AT_ONCE ? open.at(-1)?.id : undefined;
  } while (afterId !== undefined);
}
