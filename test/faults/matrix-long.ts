/**
 * The whole crash matrix: `bin/farebox exec node test/faults/matrix-long.ts`, some of it by a part of the cells'
 * names (`... matrix-long.ts "the worker"`). Prints how long each cell took, and stops at the first failure.
 */
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';
import { allCells, nameOf, openGround } from './matrix.ts';

const print = (text: string) => process.stdout.write(`${text}\n`);

async function run(part: string): Promise<void> {
  const ground = await openGround();
  const cells = allCells().filter((cell) => nameOf(cell).includes(part));
  const tookMs: number[] = [];
  try {
    for (const [index, cell] of cells.entries()) {
      print(`${index + 1}/${cells.length} ${nameOf(cell)}`);
      tookMs.push(await ground.run(cell));
      print(`  moved once, ${tookMs.at(-1)} ms after the fault was over; the books are whole`);
    }
  } finally {
    await ground.close();
  }
  const sorted = tookMs.toSorted((a, b) => a - b);
  const killed = cells.filter(({ signal }) => signal === 'SIGKILL').length;
  print(
    `${killed} kills and ${cells.length - killed} standstills: the money moved exactly once each time.`,
  );
  print(`Until then: ${sorted[Math.floor(sorted.length / 2)]} ms, at most ${sorted.at(-1)} ms.`);
}

await mochaGlobalSetup();
try {
  await run(process.argv[2] ?? '');
} finally {
  await mochaGlobalTeardown();
}
