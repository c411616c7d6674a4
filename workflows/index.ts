/** Every workflow type that a worker offers. */
export { approval } from './approval.ts';
export { ensurePartitions } from './ensure-partitions.ts';
export { expireHolds } from './expire-holds.ts';
export { grant } from './grant.ts';
export { invocation } from './invocation.ts';
export { pruneLogs } from './prune-logs.ts';
export { reconcileTopUps } from './reconcile-top-ups.ts';
export { reversals } from './reversals.ts';
export { rollUpEarnings } from './roll-up-earnings.ts';
export { topUp } from './top-up.ts';
export { webhookEndpoint } from './webhook-endpoint.ts';
