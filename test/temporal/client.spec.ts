/** The client of Temporal at its end. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { choosePort } from '../support/ports.ts';
import { createTemporalClient } from '../../src/temporal/client.ts';
import { readTemporalConfig } from '../../src/config.ts';

describe('the client of Temporal', () => {
  it('closes while calls wait to be repeated, without ending the process', async () => {
    const temporal = createTemporalClient(
      readTemporalConfig({ TEMPORAL_ADDRESS: `127.0.0.1:${await choosePort()}` }),
    );
    assert.equal(await temporal.isUp(), false);
    const probes = Array.from({ length: 20 }, () => temporal.isUp());
    // The channel has failed, so each call fails in one of the next turns and waits to be repeated.
    for (let turn = 0; turn < 10; turn += 1) await nextTurn();
    await temporal.close();
    assert.deepEqual(new Set(await Promise.all(probes)), new Set([false]));
  });
});
