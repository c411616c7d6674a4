/**
 * `npm run bench`: compares charging with Postgres alone and with a hand-written server, on one machine in one run. On
 * another machine, only the ratios are meaningful. README.md explains the rows.
 */
import { measureBytes } from './bytes.ts';
import { measureCharges } from './charges.ts';
import { measureLarge } from './large.ts';
import { loadGenerator } from './load.ts';
import { readOptions, USAGE, type Options } from './options.ts';
import { contextOf, markdownOf, publish, type Report } from './report.ts';
import type { RowResult } from './rounds.ts';
import { scriptRunner } from './scripts.ts';
import { startStack, type Stack } from './stack.ts';

const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function measure(stack: Stack, options: Options): Promise<Report> {
  const context = contextOf(stack, options);
  const rows: RowResult[] = [];
  const peaksMiB: (number | undefined)[] = [];
  const rounds = { ...options, say };
  if (options.chargeRows.length > 0) {
    const measured = await measureCharges(stack, options.chargeRows, rounds);
    rows.push(...measured.rows);
    peaksMiB.push(measured.apiPeakMemoryMiB);
  }
  const size = options.measuresBytes ? await measureBytes(stack, options.seed) : undefined;
  if (options.measuresLarge) {
    const measured = await measureLarge(stack, options.largeConsumers, rounds);
    rows.push(...measured.rows);
    peaksMiB.push(measured.apiPeakMemoryMiB);
  }
  const known = peaksMiB.filter((peak) => peak !== undefined);
  return {
    context,
    rows,
    size,
    bytesPerCharge: size?.bytesPerCharge,
    apiPeakMemoryMiB: known.length > 0 ? Math.max(...known) : undefined,
  };
}

function optionsOrUsage(): Options {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}

const options = optionsOrUsage();
say(`Load by ${loadGenerator}, scripts by ${scriptRunner}, seed ${options.seed}.`);
const stack = await startStack();
const interrupt = (): void => void stack.stop().finally(() => process.exit(130));
process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
try {
  const report = await measure(stack, options);
  say(`All checks passed.\n\n${markdownOf(report)}\n`);
  if (options.isPartial) say('A partial run: nothing is written.');
  else say(`Written to results/${await publish(report)} and the README.`);
} finally {
  await stack.stop();
}
