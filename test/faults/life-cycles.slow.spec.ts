/** Some orders of the events of every life of a top-up; `node test/faults/life-cycles-long.ts` runs all of them. */
import { Random, SEED } from '../support/random.ts';
import { openTopUpHarness, type TopUpHarness } from '../support/top-up-harness.ts';
import { allOrders, live, type Order } from './life-cycles.ts';

/** Four orders of each life: everything has happened before the first event, or not; one event comes never or twice. */
const KINDS = [true, false].flatMap((isOver) => [0, 2].map((times) => ({ isOver, times })));

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
    const byName = Object.values(Object.groupBy(allOrders(random), ({ name }) => name));
    const chosen = byName.flatMap((orders) =>
      KINDS.map(({ isOver, times }): Order => {
        const { name, told } = random.pick(orders);
        const special = random.pick(told);
        const changed = told.map((each) => (each === special ? { ...each, times } : each));
        return { name, told: changed, isOver };
      }),
    );
    await live(harness, chosen, 10);
  });
});
