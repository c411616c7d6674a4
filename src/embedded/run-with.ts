/** Runs a program to its end, with what it is to read: a secret among its arguments would be everybody's to see. */
import { execFile } from 'node:child_process';

/** Throws, with what it said in `stderr`, when it fails. */
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
    // A program that ends without reading says why by its exit code.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}
