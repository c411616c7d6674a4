/**
 * Hands the trace that started a workflow on to its steps and its next runs: the header unchanged, so that nothing here
 * depends on whether traces are made. Replays do not compare headers.
 */
import type { Headers, WorkflowInterceptors } from '@temporalio/workflow';
import { TRACE_HEADER } from '../src/domain/trace-header.ts';

export function interceptors(): WorkflowInterceptors {
  let trace: Headers = {};
  return {
    inbound: [
      {
        execute(input, next) {
          const header = input.headers[TRACE_HEADER];
          if (header) trace = { [TRACE_HEADER]: header };
          return next(input);
        },
      },
    ],
    outbound: [
      {
        scheduleActivity: (input, next) =>
          next({ ...input, headers: { ...input.headers, ...trace } }),
        continueAsNew: (input, next) => next({ ...input, headers: { ...input.headers, ...trace } }),
      },
    ],
  };
}
