/** Whether Temporal has the namespace of the settings: without the check, its calls fail with a bare "not found". */
import type { Client, WorkflowService } from '@temporalio/client';
import type { Config } from '../config.ts';

/** Status codes of gRPC. */
const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;

/**
 * Throws an error that names the setting if Temporal does not have the namespace. Other errors are ignored,
 * for example that the credential may not ask this: the calls that follow report what is wrong.
 */
export async function checkNamespace(
  { workflowService }: { readonly workflowService: Pick<WorkflowService, 'describeNamespace'> },
  { address, namespace }: Pick<Config['temporal'], 'address' | 'namespace'>,
): Promise<void> {
  try {
    await workflowService.describeNamespace({ namespace });
  } catch (error) {
    if (codeOf(error) !== NOT_FOUND) return;
    throw new Error(
      `Temporal at ${address} has no namespace ${namespace}. Correct TEMPORAL_NAMESPACE, or create the namespace: ` +
        `temporal operator namespace create --address ${address} --namespace ${namespace} --retention 30d`,
      { cause: error },
    );
  }
}

export type TemporalState = 'up' | 'no_namespace' | 'down';

/** In one call. A credential that may not ask for the namespace has an answer too: Temporal is up. */
export async function readTemporalState(client: Client, timeoutMs: number): Promise<TemporalState> {
  const { namespace } = client.options;
  try {
    await client.withDeadline(Date.now() + timeoutMs, () =>
      client.workflowService.describeNamespace({ namespace }),
    );
    return 'up';
  } catch (error) {
    const code = codeOf(error);
    if (code === NOT_FOUND) return 'no_namespace';
    return code === PERMISSION_DENIED ? 'up' : 'down';
  }
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown }).code;
}
