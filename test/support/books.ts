/** The proof that closes a test of faults: `farebox doctor` finds nothing off. */
import { farebox, type Environment } from './stack.ts';

/** Throws, with what doctor printed, unless the books are whole; against the processor too, unless told. */
export async function proveBooks(env: Environment, { processor = true } = {}): Promise<void> {
  const args = processor ? ['doctor'] : ['doctor', '--no-processor'];
  await farebox(args, { env }).catch((error: Error & { stdout?: string }) => {
    throw new Error(error.stdout || error.message);
  });
}
