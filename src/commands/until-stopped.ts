/**
 * A supervisor and the parent process may both pass on the same signal. A later one is meant to end the
 * process at once.
 */
const REPEATED_WITHIN_MS = 3_000;

/** Waits for the signal to shut down: SIGTERM, SIGINT, or the exit of the parent process. */
export function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => {
      resolve();
      setTimeout(() => {
        for (const signal of SIGNALS) process.off(signal, stop);
      }, REPEATED_WITHIN_MS).unref();
    };
    for (const signal of SIGNALS) process.on(signal, stop);
    process.once('disconnect', stop);
  });
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
