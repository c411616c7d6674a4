/**
 * The calls of cuts.spec.ts, 100,000 of them: `npm run test:client:cuts`, or
 * `bin/farebox exec node test/client/cuts-long.ts --calls 1000 --seed 7`.
 */
import { parseArgs } from 'node:util';
import { startTestApi, type TestApi } from '../support/api.ts';
import { proveBooks } from '../support/books.ts';
import { Random, SEED } from '../support/random.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { makeCutCalls } from './cut-calls.ts';

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(SEED) },
    'at-once': { type: 'string', default: '192' },
  },
});

await mochaGlobalSetup();
try {
  const api = await startTestApi();
  try {
    await cutCalls(api);
  } finally {
    await api.stop();
  }
} finally {
  await mochaGlobalTeardown();
}

async function cutCalls(api: TestApi): Promise<void> {
  process.stdout.write(`${values.calls} calls, seed ${values.seed}\n`);
  const calls = Number(values.calls);
  const account = await api.createAccount(1_000_000);
  const startedMs = performance.now();
  const random = new Random(Number(values.seed));
  const atOnce = Number(values['at-once']);
  const made = await makeCutCalls(api, account, { calls, random, atOnce });
  const { tally, cuts, leftToExpire } = made;
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  process.stdout.write(
    `${cuts} cuts in ${seconds} s; ${JSON.stringify(tally)}; ${leftToExpire} holds are left to expire\n`,
  );
  await proveBooks(api.env, { processor: false });
  process.stdout.write(
    'No call was paid twice, none that failed was paid, none was free unless it may be; the books are whole.\n',
  );
}
