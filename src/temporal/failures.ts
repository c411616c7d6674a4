/** Every step fails in words that an operator understands, and leaves the processor alone for as long as it asks. */
import type { ActivityInterceptors } from '@temporalio/worker';
import { failureFor } from '../../activities/failures.ts';

export function explainFailures(): ActivityInterceptors {
  return {
    inbound: {
      execute: (input, next) =>
        next(input).catch((error: unknown) => {
          throw failureFor(error);
        }),
    },
  };
}
