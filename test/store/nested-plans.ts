/** The plans of the statements inside our functions, from auto_explain, in one session that keeps its plans. */
import { Client } from 'pg';
import type { Database } from '../../src/store/database.ts';
import { asSuperuser } from '../support/stack.ts';
import type { PlanNode, Query } from './query-plans.ts';

export interface Explaining {
  /** Each query of `run` goes to this session first and is rolled back there; then it is run for real. */
  plansOf(run: (connection: Database) => Promise<unknown>): Promise<PlanNode[]>;
  stop(): Promise<void>;
}

export async function startExplaining(url: string, database: Database): Promise<Explaining> {
  const session = new Client({ connectionString: asSuperuser(url) });
  await session.connect();
  await session.query(`
    load 'auto_explain';
    set auto_explain.log_min_duration = 0;
    set auto_explain.log_nested_statements = on;
    set auto_explain.log_analyze = on;
    set auto_explain.log_format = json;
    set client_min_messages = log;
  `);
  return {
    plansOf: async (run) => {
      const plans: PlanNode[] = [];
      const onNotice = ({ message }: { message: string | undefined }) => {
        const json = /plan:\n([^]*)$/.exec(message ?? '')?.[1];
        if (json !== undefined) plans.push((JSON.parse(json) as { Plan: PlanNode }).Plan);
      };
      const explain = async ({ sql, values }: Query) => {
        await session.query('begin');
        session.on('notice', onNotice);
        await session.query(sql.replaceAll('$slonik_', '$'), [...values]);
        // What would run at the commit.
        await session.query('set constraints all immediate');
        session.off('notice', onNotice);
        await session.query('rollback');
      };
      const explaining = new Proxy(database, {
        get:
          (target, method) =>
          async (query: Query): Promise<unknown> => {
            await explain(query);
            return (target[method as 'any'] as (asked: unknown) => unknown)(query);
          },
      });
      await run(explaining);
      return plans;
    },
    stop: () => session.end(),
  };
}
