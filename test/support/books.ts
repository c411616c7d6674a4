/** The proof that closes a test of faults: `farebox doctor` finds nothing off. */
import { farebox, type Environment } from './stack.ts';

/**
 * Throws, with what doctor printed, unless the books are right; against the processor too, unless told. `only`: these
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
