/** Some sixty orders in which events of top-ups may be told; `node test/faults/life-cycles-long.ts` has all of them. */
import { randomInt } from 'node:crypto';
import { Random } from '../simulation/random.ts';
import { openDesk, type TopUpDesk } from '../workflows/top-up-desk.ts';
import { allOrders, live } from './life-cycles.ts';

const ORDERS = 60;

describe('the events of a top-up', function () {
  this.timeout(240_000);
  let desk: TopUpDesk;

  before(async () => {
    // No workflow asks by itself: what is not told, reconciliation finds.
    desk = await openDesk({ FIRST_ASK_MS: '3600000' });
    await desk.startWorker();
  });
  after(async () => {
    await desk?.close();
  });

  const seed = Number(process.env['SEED'] ?? randomInt(2 ** 32));
  it(`end in the same books in whatever order they are told, twice or never (SEED=${seed})`, async () => {
    const random = new Random(seed);
    const orders = allOrders(random);
    // Of each life cycle as many: the long ones have most of the orders.
    const byName = Object.values(Object.groupBy(orders, ({ name }) => name)).map(
      (all) => all ?? [],
    );
    const chosen = Array.from({ length: ORDERS }, (_, index) =>
      random.pick(byName[index % byName.length] ?? []),
    );
    await live(desk, chosen, 10);
  });
});
