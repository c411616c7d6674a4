/** A span for each attempt of a step, in the trace that started its workflow. */
import type { Context } from '@temporalio/activity';
import { defaultPayloadConverter } from '@temporalio/common';
import type { ActivityInterceptors } from '@temporalio/worker';
import { TRACE_HEADER } from '../domain/trace-header.ts';
import type { Carrier, Tracing } from '../tracing/tracing.ts';

export function tracedSteps(tracing: Tracing) {
  return ({ info }: Context): ActivityInterceptors => ({
    inbound: {
      execute(input, next) {
        const header = input.headers[TRACE_HEADER];
        const carrier = header ? defaultPayloadConverter.fromPayload<Carrier>(header) : {};
        const { workflowId = '', runId = '' } = info.workflowExecution ?? {};
        return tracing.inSpan(
          `RunActivity:${info.activityType}`,
          {
            parent: tracing.broughtBy(carrier),
            attributes: {
              temporalWorkflowID: workflowId,
              temporalRunID: runId,
              'farebox.attempt': info.attempt,
            },
          },
          () => next(input),
        );
      },
    },
  });
}
