/** What a program that watches an outage of so many minutes, in real time, needs around it. */
import { parseArgs } from 'node:util';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../support/setup.ts';

/** `--minutes` says how many, else it is `minutesUsual`. */
export async function inRealTime<Desk extends { close(): Promise<void> }>(
  openDesk: () => Promise<Desk>,
  run: (desk: Desk, minutes: number) => Promise<void>,
  minutesUsual: number,
): Promise<void> {
  const { values } = parseArgs({
    options: { minutes: { type: 'string', default: String(minutesUsual) } },
  });
  await mochaGlobalSetup();
  try {
    const desk = await openDesk();
    try {
      await run(desk, Number(values.minutes));
    } finally {
      await desk.close();
    }
  } finally {
    await mochaGlobalTeardown();
  }
}
