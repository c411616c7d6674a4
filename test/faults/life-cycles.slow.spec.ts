/** About sixty orders of the events of top-ups; `node test/faults/life-cycles-long.ts` runs all of them. */
import { Random, SEED } from '../support/random.ts';
import { openTopUpHarness, type TopUpHarness } from '../support/top-up-harness.ts';
import { allOrders, live } from './life-cycles.ts';

const ORDERS = 60;

describe('the events of a top-up', () => {
  let harness: TopUpHarness;

  before(async () => {
    // No workflow asks by itself: reconciliation finds undelivered events.
    harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000' });
    await harness.startWorker();
  });
  after(async () => {
    await harness?.close();
  });

  it(`end in the same books when they come in any order, twice or never (SEED=${SEED})`, async () => {
    const random = new Random(SEED);
    const orders = allOrders(random);
    // Equally many from each life cycle: the long ones have most of the orders.
    const byName = Object.values(Object.groupBy(orders, ({ name }) => name)).map(
      (all) => all ?? [],
    );
    const chosen = Array.from({ length: ORDERS }, (_, index) =>
      random.pick(byName[index % byName.length] ?? []),
    );
    await live(harness, chosen, 10);
  });
});
