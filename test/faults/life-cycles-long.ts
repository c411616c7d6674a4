/**
 * Every order of the events of every life cycle of a top-up: `bin/farebox exec node test/faults/life-cycles-long.ts`.
 * SEED chooses which are told twice or never.
 */
import { randomInt } from 'node:crypto';
import { Random } from '../simulation/random.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { openDesk } from '../workflows/top-up-desk.ts';
import { allOrders, live } from './life-cycles.ts';

const AT_ONCE = 20;
const CHUNK = 200;

const seed = Number(process.env['SEED'] ?? randomInt(2 ** 32));
const print = (text: string) => process.stdout.write(`${text}\n`);
print(`SEED=${seed}`);
await mochaGlobalSetup();
try {
  const desk = await openDesk({ FIRST_ASK_MS: '3600000' });
  const worker = await desk.startWorker();
  const orders = allOrders(new Random(seed));
  for (let at = 0; at < orders.length; at += CHUNK) {
    await live(desk, orders.slice(at, at + CHUNK), AT_ONCE);
    print(`${Math.min(at + CHUNK, orders.length)} of ${orders.length} orders: the books are right`);
  }
  await worker.stop();
  await desk.close();
} finally {
  await mochaGlobalTeardown();
}
