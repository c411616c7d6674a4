/**
 * What the commands that inspect have in common: 0 when all is well, 1 when something is wrong, 2 when they could
 * not look (as diff and grep do), so that a watcher never mistakes an unreachable database for lost money.
 */
import { failureReason } from '../stripe/failure-reason.ts';

const FOUND_SOMETHING = 1;
const COULD_NOT_LOOK = 2;

/**
 * Runs an inspection. `print` gets what was found and returns whether all is well. With `json`, a failure is printed
 * to standard output as `{"ok": null, "error": {"message": "..."}}`, so that a script always gets JSON.
 */
export async function inspect<T>(
  { json }: { readonly json: boolean },
  look: () => Promise<T>,
  print: (found: T) => boolean,
): Promise<void> {
  let found: T;
  try {
    found = await look();
  } catch (error) {
    const message = failureReason(error);
    if (json) process.stdout.write(`${JSON.stringify({ ok: null, error: { message } })}\n`);
    else process.stderr.write(`farebox: could not check: ${message}\n`);
    process.exitCode = COULD_NOT_LOOK;
    return;
  }
  if (!print(found)) process.exitCode = FOUND_SOMETHING;
}

/** Shows on a terminal what is being done; says nothing in a pipe. */
export function showProgress(step: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[2K${step} ...`);
}

export function endProgress(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\u001B[2K');
}
