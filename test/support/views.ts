/** A stack with an account, as operators see it: its rows, and its workflows in Temporal. */
import { Client } from 'pg';
import { readTemporalConfig } from '../../src/config.ts';
import { workflowIdIn } from '../../src/domain/task-queues.ts';
import { createTemporalClient } from '../../src/temporal/client.ts';
import { createTestAccount } from './accounts.ts';
import type { Stack } from './stack.ts';

/** Opens it over a stack, which it stops at its end. */
export async function openViews(stack: Stack, balanceDollars: number) {
  const account = await createTestAccount(stack.database.url, balanceDollars);
  const temporal = createTemporalClient(readTemporalConfig(stack.env));
  const sql = new Client({ connectionString: stack.database.url });
  await sql.connect();
  const workflow = (kind: string, id: string) =>
    temporal.client.workflow.getHandle(workflowIdIn(temporal, kind, id));
  return {
    stack,
    account,
    temporal,
    sql,
    workflow,
    /** Whether the UI would list the workflow for this query. */
    async isFound(kind: string, id: string, query: string): Promise<boolean> {
      const all = `WorkflowId = "${workflow(kind, id).workflowId}" and ${query}`;
      return (await temporal.client.workflow.count(all)).count === 1;
    },
    async detailsOf(kind: string, id: string): Promise<string> {
      return JSON.stringify(await workflow(kind, id).query('__temporal_workflow_metadata'));
    },
    async close(): Promise<void> {
      await temporal.close();
      await sql.end();
      await stack.stop();
    },
  };
}
