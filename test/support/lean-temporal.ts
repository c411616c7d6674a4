/** Options of Temporal's development server with which tests use less CPU time. */
export const LEAN_TEMPORAL = {
  // It collects garbage less often, as there is memory to spare. And it keeps to one core, so that idle threads do not
  // look for work: that saves a tenth of the CPU time of workflow tests.
  ownEnv: { GOGC: '800', GOMAXPROCS: '1' },
  settings: {
    // Each task queue has a worker or two, so its partitions would only pass tasks and polls on.
    'matching.numTaskqueueReadPartitions': '1',
    'matching.numTaskqueueWritePartitions': '1',
    // It visits all its metrics each second, and keeps about ten thousand for each namespace that it has ever had. A
    // tenth of them are for each task queue apart.
    'metrics.breakdownByTaskQueue': 'false',
    'metrics.breakdownByPartition': 'false',
    'metrics.breakdownByBuildID': 'false',
  },
} as const;
