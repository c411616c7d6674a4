/** The proof at the end of a test of faults: `farebox doctor` finds nothing. */
import { farebox, type Environment } from './stack.ts';

/**
 * Throws, with doctor's output, unless the books are correct; against the processor too, by default. `only`: these
 * parts alone, for a test that changed the schema itself.
 */
export async function proveBooks(
  env: Environment,
  { processor = true, only }: { processor?: boolean; only?: readonly string[] } = {},
): Promise<void> {
  const args = ['doctor', ...(processor ? [] : ['--no-processor'])];
  if (only) args.push('--only', only.join());
  await farebox(args, { env }).catch((error: Error & { stdout?: string }) => {
    throw new Error(error.stdout || error.message);
  });
}
