/**
 * Every flood of floods.ts from 256 connections, in rounds of some seconds. In each round, another developer
 * first charges alone for as long, then beside the flood, and then while the same flood is sent to another
 * process that only sends each body back (bare-server.ts), which says what the machine itself costs. One line
 * for each flood: the ratio of the p99 of that developer's charges beside the flood to the one alone, its
 * median and those of all rounds. It fails when that developer is refused. The ratio fails nothing: it
 * depends on the machine's cores.
 * `npm run test:faults:floods -- [--seconds 10] [--rounds 1] [--connections 256] [--only "batches of 1,000"]`
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { median } from '../../bench/rounds.ts';
import { startChild } from '../../src/embedded/child.ts';
import { LEAN_NODE } from '../../src/embedded/parts.ts';
import { ChargeReply } from '../../src/schemas/charges.ts';
import type { TestAccount } from '../support/accounts.ts';
import { startTestApiProcesses, type TestApi } from '../support/api.ts';
import { bodyOf, charge } from '../support/http.ts';
import { choosePort } from '../support/ports.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { WITH_RATE_LIMITS } from '../support/stack.ts';
import { FLOODS, floodsOf, makeLargeBudgets, measure } from './floods.ts';

/** The bound on a charge's p99 in a flood, compared to without it. */
const RATIO_MAX = 2;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '1' },
    connections: { type: 'string', default: '256' },
    only: { type: 'string' },
  },
});
const options = {
  connections: Number(values.connections),
  forMs: Number(values.seconds) * 1_000,
};

await mochaGlobalSetup();
try {
  const api = await startTestApiProcesses({ env: WITH_RATE_LIMITS, nodeFlags: LEAN_NODE });
  const victim = await api.createAccount(10_000);
  const poor = await api.createAccount(1);
  const port = await choosePort();
  const bareUrl = `http://127.0.0.1:${port}`;
  const bare = await startChild({
    name: 'bare server',
    command: [process.execPath, ...LEAN_NODE, join(import.meta.dirname, 'bare-server.ts')],
    env: { PATH: process.env['PATH'], PORT: String(port) },
    logFile: join(process.env['TEST_FOLDER'] ?? '', 'bare-server.log'),
    ready: 'message',
  });
  // Code that is compiled first is slow, and is not measured.
  await measure(api, victim, {}, options);
  for (const name of values.only === undefined ? FLOODS : [values.only]) {
    const rounds = [];
    for (let round = 0; round < Number(values.rounds); round += 1) {
      const attacker = await createAttacker(api, victim);
      const { id } = bodyOf(await charge(api, attacker, { amount: 1 }), 201, ChargeReply);
      const flood = floodsOf(attacker, poor, id).find((each) => each.name === name);
      if (!flood) throw new Error(`no flood is named ${name}`);
      if (name === 'pages of large budgets') await makeLargeBudgets(api, attacker);
      const alone = await measure(api, victim, {}, options);
      const flooded = await measure(api, victim, flood, options);
      const beside = await measure(api, victim, { ...flood, at: bareUrl }, options);
      rounds.push({ alone, flooded, beside });
    }
    const refused = sumOf(
      rounds.map(({ alone, flooded, beside }) => alone.refused + flooded.refused + beside.refused),
    );
    const ratios = rounds.map(({ alone, flooded }) => flooded.p99Ms / alone.p99Ms);
    const ratio = median(ratios);
    const verdict = refused > 0 ? 'REFUSED' : ratio > RATIO_MAX ? 'NOT MET' : 'met';
    process.stdout.write(
      `${name}: ratio ${ratio.toFixed(2)} (at most ${RATIO_MAX}), ${verdict}; of the rounds ${list(ratios)}; ` +
        `of the other process ${list(rounds.map(({ alone, beside }) => beside.p99Ms / alone.p99Ms))}; ` +
        `p99 alone ${list(rounds.map(({ alone }) => alone.p99Ms))} ms; ` +
        `p50 ${list(rounds.map(({ flooded }) => flooded.p50Ms))} ms, alone ${list(rounds.map(({ alone }) => alone.p50Ms))} ms; ` +
        `the sender took ${list(rounds.map(({ flooded }) => flooded.attack.busyShare))} of a core; ` +
        `answers to the flood ${rounds.map(({ flooded }) => JSON.stringify(flooded.attack.answers)).join(', ')}; ` +
        `${refused} refused\n`,
    );
    if (refused > 0) process.exitCode = 1;
  }
  await bare.stop();
  await api.stop();
} finally {
  await mochaGlobalTeardown();
}

/** An account whose floods fill the one of two lanes that the victim's charges wait in. */
async function createAttacker(api: TestApi, victim: TestAccount): Promise<TestAccount> {
  for (;;) {
    const account = await api.createAccount(10_000);
    if (laneOf(account) === laneOf(victim)) return account;
  }
}

/** The lane of two, chosen as the batcher does it, by the last digits of the consumer. */
function laneOf({ consumerId }: TestAccount): number {
  return Number.parseInt(consumerId.slice(-4), 16) % 2;
}

function list(numbers: readonly number[]): string {
  return numbers.map((each) => each.toFixed(2)).join(', ');
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
