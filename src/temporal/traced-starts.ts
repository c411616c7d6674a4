/**
 * Spans of the calls to Temporal, and the trace in the headers of what they start: the workflow passes it on
 * to its steps (workflows/trace-header.ts).
 */
import { defaultPayloadConverter, type Headers } from '@temporalio/common';
import type { WorkflowClientInterceptor } from '@temporalio/client';
import { TRACE_HEADER } from '../domain/trace-header.ts';
import { SpanKind, type Tracing } from '../tracing/tracing.ts';

export function tracedStarts(tracing: Tracing): WorkflowClientInterceptor {
  const inSpan = <T>(name: string, workflowId: string, call: () => Promise<T>) =>
    tracing.inSpan(
      name,
      { kind: SpanKind.CLIENT, attributes: { temporalWorkflowID: workflowId } },
      call,
    );
  const withTrace = (headers: Headers): Headers => {
    const carrier = tracing.carrier();
    if (Object.keys(carrier).length === 0) return headers;
    return { ...headers, [TRACE_HEADER]: defaultPayloadConverter.toPayload(carrier) };
  };
  return {
    startWithDetails: (input, next) =>
      inSpan(`StartWorkflow:${input.workflowType}`, input.options.workflowId, () =>
        next({ ...input, headers: withTrace(input.headers) }),
      ),
    signalWithStart: (input, next) =>
      inSpan(`SignalWithStartWorkflow:${input.workflowType}`, input.options.workflowId, () =>
        next({ ...input, headers: withTrace(input.headers) }),
      ),
    startUpdateWithStart: (input, next) => {
      const { workflowId } = input.workflowStartOptions;
      return inSpan(`UpdateWithStartWorkflow:${input.workflowType}`, workflowId, () =>
        next({ ...input, workflowStartHeaders: withTrace(input.workflowStartHeaders) }),
      );
    },
    startUpdate: (input, next) =>
      inSpan(`UpdateWorkflow:${input.updateName}`, input.workflowExecution.workflowId ?? '', () =>
        next(input),
      ),
    signal: (input, next) =>
      inSpan(`SignalWorkflow:${input.signalName}`, input.workflowExecution.workflowId ?? '', () =>
        next(input),
      ),
    query: (input, next) =>
      inSpan(`QueryWorkflow:${input.queryType}`, input.workflowExecution.workflowId ?? '', () =>
        next(input),
      ),
  };
}
