/**
 * Exit codes of the commands that inspect: 0 if all is well, 1 if something is wrong, 2 if they could not check (as
 * diff and grep do), so that monitoring never mistakes an unreachable database for lost money.
 */
import { failureReason } from '../stripe/errors.ts';

const FOUND_SOMETHING = 1;
const COULD_NOT_LOOK = 2;

/** What a failed inspection had changed. */
interface Changed {
  /** Continues the line of the error. */
  readonly text: string;
  /** Members beside the error. */
  readonly json: Readonly<Record<string, unknown>>;
}

interface Failing {
  readonly json: boolean;
  readonly changed?: (() => Changed) | undefined;
}

/**
 * Runs an inspection. `print` prints the result and returns whether all is well. With `json`, a failure is printed
 * to standard output as `{"ok": null, "error": {"message": "..."}}`, so that a script always gets JSON. The
 * failure of one that also changes something includes what it has `changed`.
 */
export async function inspect<T>(
  { json, changed }: Failing,
  look: () => Promise<T>,
  print: (found: T) => boolean,
): Promise<void> {
  let found: T;
  try {
    found = await look();
  } catch (error) {
    couldNotCheck(error, { json, changed });
    return;
  }
  if (!print(found)) process.exitCode = FOUND_SOMETHING;
}

/** Also for what fails before an inspection runs, such as reading its settings. */
export function couldNotCheck(error: unknown, { json, changed }: Failing): void {
  const message = failureReason(error);
  const before = changed?.();
  process[json ? 'stdout' : 'stderr'].write(
    json
      ? `${JSON.stringify({ ok: null, error: { message }, ...before?.json })}\n`
      : `farebox: could not check: ${message}${before?.text ?? ''}\n`,
  );
  process.exitCode = COULD_NOT_LOOK;
}

interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Shows the current step on a terminal; prints nothing in a pipe. */
export function showProgress(step: string, out: Output = process.stderr): void {
  // A line that wraps would leave a row behind. A terminal that does not know its size reports 0 columns.
  const line = `${step} ...`.slice(0, (out.columns || 80) - 1);
  if (out.isTTY) out.write(`\r\u001B[2K${line}`);
}

export function endProgress(out: Output = process.stderr): void {
  if (out.isTTY) out.write('\r\u001B[2K');
}
