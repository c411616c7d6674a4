/** A span for each statement of a recorded trace. It has the statement's text, without the values. */
import type { Interceptor } from 'slonik';
import { errorTypeOf, markFailed, SpanKind, type Span, type Tracing } from '../tracing/tracing.ts';

export function tracedStatements(tracing: Tracing): Interceptor {
  const spans = new WeakMap<object, Span>();
  const end = ({ sandbox }: { readonly sandbox: object }) => {
    spans.get(sandbox)?.end();
    return null;
  };
  return {
    name: 'traced-statements',
    beforeQueryExecution: ({ sandbox }, { sql }) => {
      const summary = summaryOf(sql);
      const span = tracing.startChild(summary, {
        kind: SpanKind.CLIENT,
        attributes: {
          'db.system.name': 'postgresql',
          'db.query.summary': summary,
          'db.query.text': sql.replaceAll(/\s+/g, ' ').trim(),
        },
      });
      if (span) spans.set(sandbox, span);
      return null;
    },
    afterQueryExecution: end,
    queryExecutionError: (query, _, error) => {
      const span = spans.get(query.sandbox);
      if (span) markFailed(span, errorTypeOf(error));
      return end(query);
    },
  };
}

/** Such as `select farebox.post_fitting_groups_2`: the command, and the first thing of ours that it names. */
function summaryOf(sql: string): string {
  const [command = 'statement'] = /\w+/.exec(sql) ?? [];
  const [thing] = /farebox\.\w+/.exec(sql) ?? [];
  return thing === undefined ? command.toLowerCase() : `${command.toLowerCase()} ${thing}`;
}
