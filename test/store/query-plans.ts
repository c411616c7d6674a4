/** How Postgres runs the queries of a store function: each statement again, as it was sent, explained. */
import type { Client } from 'pg';
import type { Connection, Database } from '../../src/store/database.ts';

export interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

export interface Query {
  readonly sql: string;
  readonly values: readonly unknown[];
}

export async function plansOf(
  database: Database,
  client: Client,
  run: (connection: Connection) => Promise<unknown>,
): Promise<PlanNode[]> {
  const queries: Query[] = [];
  const recording = new Proxy(database, {
    get:
      (target, method) =>
      (query: Query): unknown => {
        queries.push(query);
        return (target[method as 'any'] as (asked: unknown) => unknown)(query);
      },
  });
  await run(recording);
  const plans: PlanNode[] = [];
  for (const { sql, values } of queries) {
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      `explain (analyze, buffers, format json) ${sql.replaceAll('$slonik_', '$')}`,
      [...values],
    );
    plans.push((rows[0] as { 'QUERY PLAN': [{ Plan: PlanNode }] })['QUERY PLAN'][0].Plan);
  }
  return plans;
}

export function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

/** The partitions of `charges` that were read, not only planned for. */
export function partitionsRead(plan: PlanNode): string[] {
  const names = nodesOf(plan)
    .filter((node) => node['Actual Loops'] > 0)
    .map((node) => node['Relation Name'] ?? '')
    .filter((name) => name.startsWith('charges_'));
  return [...new Set(names)].toSorted();
}

export function blocksOf(plan: PlanNode): number {
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
}
