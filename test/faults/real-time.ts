/** What a program needs that watches an outage of some minutes in real time. */
import { parseArgs } from 'node:util';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';

/** `--minutes` gives the number, by default `minutesUsual`. */
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
