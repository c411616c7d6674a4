/** Runs a program to its end with text on its standard input: every user could see a secret among its arguments. */
import { execFile } from 'node:child_process';

/** Throws with the program's output in `stderr` when it fails. */
export function runWith(
  input: string,
  [file = '', ...args]: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(file, args, { cwd: '/', env }, (error, stdout, stderr) => {
      if (error) reject(Object.assign(error, { stderr }));
      else resolve(stdout);
    });
    // A program that ends without reading explains itself by its exit code.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}
