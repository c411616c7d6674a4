/**
 * Every order of the events of every life cycle of a top-up: `bin/farebox exec node test/faults/life-cycles-long.ts`.
 * SEED chooses which are delivered twice or never; a number behind it continues from there.
 */
import { Random, SEED } from '../support/random.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { openTopUpHarness } from '../support/top-up-harness.ts';
import { allOrders, live } from './life-cycles.ts';

const AT_ONCE = 10;
const CHUNK = 100;

const print = (text: string) => process.stdout.write(`${text}\n`);
print(`SEED=${SEED}`);
await mochaGlobalSetup();
try {
  const harness = await openTopUpHarness({ FIRST_ASK_MS: '3600000' });
  await harness.startWorker();
  const orders = allOrders(new Random(SEED));
  for (let at = Number(process.argv[2] ?? 0); at < orders.length; at += CHUNK) {
    await live(harness, orders.slice(at, at + CHUNK), AT_ONCE);
    print(`${Math.min(at + CHUNK, orders.length)} of ${orders.length} orders: the books are right`);
  }
  await harness.close();
} catch (error) {
  // Printed first: other lives continue, and would meet the end of the servers.
  process.stderr.write(`${(error as Error).stack}\n`);
  process.exitCode = 1;
} finally {
  await mochaGlobalTeardown();
}
