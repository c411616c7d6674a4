/** Waits for what ends a process in good order: SIGTERM, SIGINT, or the end of the parent that watches it. */
export function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
    process.once('disconnect', () => resolve());
  });
}
