/**
 * The header that passes a trace to a workflow, and on to its steps: the one that Temporal's own tracing uses
 * in every language.
 */
export const TRACE_HEADER = '_tracer-data';
