/** What a program that watches an outage of so many minutes, in real time, needs around it. */
import { parseArgs } from 'node:util';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';

/** `--minutes` says how many, else it is `minutesUsual`. */
export async function inRealTime<Harness extends { close(): Promise<void> }>(
  openTopUpHarness: () => Promise<Harness>,
  run: (harness: Harness, minutes: number) => Promise<void>,
  minutesUsual: number,
): Promise<void> {
  const { values } = parseArgs({
    options: { minutes: { type: 'string', default: String(minutesUsual) } },
  });
  await mochaGlobalSetup();
  try {
    const harness = await openTopUpHarness();
    try {
      await run(harness, Number(values.minutes));
    } finally {
      await harness.close();
    }
  } finally {
    await mochaGlobalTeardown();
  }
}
