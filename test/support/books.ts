/**
 * The proof at the end of a test: doctor finds nothing. It examines in this process, which takes a fraction
 * of the CPU time of the command; `test/commands/doctor` tests the command.
 */
import { findFaults, PARTS, report, type Part } from '../../src/commands/doctor.ts';
import type { Environment } from './stack.ts';

/**
 * Throws, with doctor's report, unless the books are correct; against the processor too, by default. `only`: these
 * parts alone, for a test that changed the schema itself.
 */
export async function proveBooks(
  env: Environment,
  { processor = true, only = PARTS }: { processor?: boolean; only?: readonly Part[] } = {},
): Promise<void> {
  const outside: readonly Part[] = ['temporal', 'processor', 'mail'];
  const parts = only.filter((part) => processor || !outside.includes(part));
  const { findings, checks, error } = await findFaults(env, parts);
  if (findings.length > 0) throw new Error(report(findings, checks), { cause: error });
}
