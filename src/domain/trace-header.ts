/** The header that hands a trace to a workflow, and from it to its steps: the one of Temporal's own tracing, in every language. */
export const TRACE_HEADER = '_tracer-data';
