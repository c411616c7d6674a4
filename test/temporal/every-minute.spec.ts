/** The loop of a worker that runs for months: what one round opens must not outlast it. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { readTemporalConfig } from '../../src/config.ts';
import { createTemporalClient } from '../../src/temporal/client.ts';
import { everyMinute } from '../../src/temporal/every-minute.ts';

describe('what a worker does every minute', () => {
  it('leaves no listener on the signal that ends it', async () => {
    const address = process.env['TEST_TEMPORAL_ADDRESS'];
    const temporal = createTemporalClient(readTemporalConfig({ TEMPORAL_ADDRESS: address }));
    const stopping = new AbortController();
    const failed = Promise.withResolvers<void>();
    const work = async () => {
      for (let n = 0; n < 5; n += 1) await temporal.client.workflowService.getSystemInfo({});
      throw new Error('the round has failed');
    };
    const keeping = everyMinute(temporal, stopping.signal, work, () => failed.resolve());
    try {
      await failed.promise;
      // Only that of the pause before the next round.
      assert.ok(getEventListeners(stopping.signal, 'abort').length <= 1);
    } finally {
      stopping.abort();
      await keeping;
      await temporal.close();
    }
  });
});
