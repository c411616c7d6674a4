/** Metrics of flushes, observed once per flush, not per charge. */
import { Histogram, type Registry } from '@prometheus-io/client';
import type { Flush } from '../charging/batcher.ts';

/** Up to the batcher's deadline of 5 s. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
/** Up to the largest batch. */
const CHARGES = [1, 2, 5, 10, 20, 50, 100, 200];

export function observeFlushes(registry: Registry): (flush: Flush) => void {
  const registers = [registry];
  const charges = new Histogram({
    name: 'farebox_charge_batch_size',
    help: 'Charges in a flush.',
    buckets: CHARGES,
    registers,
  });
  const waited = new Histogram({
    name: 'farebox_charge_batch_wait_seconds',
    help: 'How long the oldest charge of a flush waited before it was sent.',
    buckets: SECONDS,
    registers,
  });
  const took = new Histogram({
    name: 'farebox_charge_flush_seconds',
    help: 'How long Postgres took to decide and commit a flush.',
    buckets: SECONDS,
    registers,
  });
  return (flush) => {
    charges.observe(flush.charges);
    waited.observe(flush.waitedMs / 1_000);
    took.observe(flush.tookMs / 1_000);
  };
}
