/** Ports that are chosen before their servers listen. */
import assert from 'node:assert/strict';
import { choosePort } from '../../src/embedded/ports.ts';

describe('a chosen port', () => {
  it('is not chosen again for a while, although nothing listens there yet', async () => {
    const range = { from: 31_000, below: 31_200 };
    const ports = await Promise.all(
      Array.from({ length: 100 }, () => choosePort(undefined, range)),
    );
    assert.equal(new Set(ports).size, ports.length);
    assert.ok(ports.every((port) => port >= range.from && port < range.below));
  });

  it('may be chosen again once half of the range was chosen since', async () => {
    const range = { from: 31_200, below: 31_210 };
    for (let count = 0; count < 50; count += 1) await choosePort(undefined, range);
  });
});
