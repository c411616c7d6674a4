/** `npm run test:faults:leases`: the faults of leases.ts, with the service away for a minute. */
import { parseArgs } from 'node:util';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { runLeaseFaults } from './leases.ts';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' } } });

await mochaGlobalSetup();
try {
  await runLeaseFaults({
    awaySeconds: Number(values.seconds),
    report: (line) => void process.stdout.write(`${line}\n`),
  });
} finally {
  await mochaGlobalTeardown();
}
