/** Names of tools that are charged before they are registered: one developer's are written at a limited rate. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ToolNames } from '../../src/charging/tool-names.ts';
import { openTestLedger, type TestLedger } from '../support/ledger.ts';
import { until } from '../support/stack.ts';

/** The first 50 are written at once. The others take 2 ms each. */
const NAMES = 200;
const MS_MIN = (NAMES - 50) * 2;

describe('new tool names of a developer', () => {
  let ledger: TestLedger;
  let names: ToolNames;

  before(async () => {
    ledger = await openTestLedger(2);
    names = new ToolNames(ledger.database);
  });
  after(() => ledger?.drop());

  it('wait for one another, and not for those of another developer', async () => {
    const [busy, other] = [randomUUID(), randomUUID()];
    const began = performance.now();
    let written = 0;
    const all = Promise.all(
      Array.from({ length: NAMES }, async (_, n) => {
        assert.equal(await names.note({ developerId: busy, name: `tool ${n}` }), true);
        written += 1;
      }),
    );
    assert.equal(await names.note({ developerId: other, name: 'tool' }), true);
    assert.ok(written < NAMES);
    await all;
    assert.ok(performance.now() - began >= MS_MIN);
  });

  it('take one turn for a name that many charges wait for', async () => {
    // Again if the machine stood still meanwhile.
    await until(async () => {
      const developerId = randomUUID();
      const began = performance.now();
      const noted = Array.from({ length: 10_000 }, () => names.note({ developerId, name: 'tool' }));
      assert.ok((await Promise.all(noted)).every(Boolean));
      return performance.now() - began < 10_000 * 2;
    });
  });
});
