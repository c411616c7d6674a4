/**
 * A process of its own that makes calls under a lease until it is killed, and prints a line for every one that was
 * answered: the lease and the number of the call. Its clock may be wrong.
 */
import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Farebox, type LeaseOptions } from '@farebox/client';

const shiftMs = Number(process.env['CLOCK_SHIFT_MS'] ?? 0);
const now = Date.now;
Date.now = () => now() + shiftMs;

const options = JSON.parse(process.env['LEASE'] ?? '') as LeaseOptions;
const lease = await new Farebox().lease(options);
for (;;) {
  const { leaseId, sequence } = await lease.charge({ tool: 'search' });
  writeSync(1, `${leaseId} ${sequence}\n`);
  await delay(2);
}
