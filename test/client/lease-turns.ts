/** A process of its own that takes a lease whenever it is told to, says how that went, and closes it when told to. */
import { once } from 'node:events';
import { Farebox, type LeaseOptions } from '@farebox/client';

const farebox = new Farebox();
const options = JSON.parse(process.env['LEASE'] ?? '') as LeaseOptions;
process.send?.('started');
for (;;) {
  await once(process, 'message');
  try {
    const lease = await farebox.lease(options);
    process.send?.('taken');
    await once(process, 'message');
    await lease.close();
    process.send?.('closed');
  } catch (error) {
    process.send?.(String(error));
  }
}
