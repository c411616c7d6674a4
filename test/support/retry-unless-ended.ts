/** The update `retry` to a workflow whose obstacle is gone. The workflow may end before the update arrives. */
import { WorkflowNotFoundError, type WorkflowHandle } from '@temporalio/client';

/** Does nothing if the workflow has ended by itself. */
export async function retryUnlessEnded(handle: WorkflowHandle): Promise<void> {
  await handle.executeUpdate('retry').catch((error: unknown) => {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  });
}
