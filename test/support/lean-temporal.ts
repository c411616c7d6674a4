/** Options of Temporal's development server with which tests use less CPU time. */
export const LEAN_TEMPORAL = {
  // It collects garbage less often: there is memory to spare.
  ownEnv: { GOGC: '800' },
  settings: {
    // Each namespace has a worker or two, so partitions of their task queues only pass tasks and polls on.
    'matching.numTaskqueueReadPartitions': '1',
    'matching.numTaskqueueWritePartitions': '1',
  },
} as const;
