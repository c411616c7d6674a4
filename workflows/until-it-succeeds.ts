/**
 * Retries a short step in Postgres without limit, because its workflow can do nothing else. The UI shows the
 * last error.
 */
export const UNTIL_IT_SUCCEEDS = {
  startToCloseTimeout: '15s',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
} as const;
