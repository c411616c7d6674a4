/** How Postgres runs the queries of a store function: each statement again, as it was sent, explained. */
import type { Client } from 'pg';
import type { Connection, Database, Transaction } from '../../src/store/database.ts';

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
  run: (connection: Database) => Promise<unknown>,
): Promise<PlanNode[]> {
  const queries: Query[] = [];
  await run(recording(database, queries));
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

/** Adds what runs on the connection, and in its transactions, to `queries`. */
function recording<T extends Connection>(connection: T, queries: Query[]): T {
  return new Proxy(connection, {
    get:
      (target, method) =>
      (asked: unknown): unknown => {
        const call = target[method as keyof T] as (this: T, asked: unknown) => unknown;
        if (method === 'transaction') {
          const inner = asked as (tx: Transaction) => unknown;
          return call.call(target, (tx: Transaction) => inner(recording(tx, queries)));
        }
        queries.push(asked as Query);
        return call.call(target, asked);
      },
  });
}

/** The rows of one table that these plans read, and not only those that they found. */
export function rowsReadOf(table: string, plans: readonly PlanNode[]): number {
  return plans
    .flatMap(nodesOf)
    .filter((node) => node['Relation Name'] === table && node['Node Type'] !== 'ModifyTable')
    .map(
      (node) =>
        (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
    )
    .reduce((sum, rows) => sum + rows, 0);
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
