/** Whether Temporal has the namespace of the settings: without the check, its calls fail with a bare "not found". */
import type { WorkflowService } from '@temporalio/client';
import type { Config } from '../config.ts';

/** Status code of gRPC. */
const NOT_FOUND = 5;

/**
 * Throws an error that names the setting if Temporal does not have the namespace. Other errors are ignored, for example that
 * the credential may not ask this: the calls that follow report what is wrong.
 */
export async function checkNamespace(
  { workflowService }: { readonly workflowService: Pick<WorkflowService, 'describeNamespace'> },
  { address, namespace }: Pick<Config['temporal'], 'address' | 'namespace'>,
): Promise<void> {
  try {
    await workflowService.describeNamespace({ namespace });
  } catch (error) {
    if ((error as { code?: unknown }).code !== NOT_FOUND) return;
    throw new Error(
      `Temporal at ${address} has no namespace ${namespace}. Correct TEMPORAL_NAMESPACE, or create the namespace: ` +
        `temporal operator namespace create --address ${address} --namespace ${namespace} --retention 30d`,
      { cause: error },
    );
  }
}
