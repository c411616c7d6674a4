/** Charges through the client library, in a process of their own. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Ledger } from './ledger.ts';
import type { Effort, Measured } from './rounds.ts';
import type { HttpServer } from './stack.ts';

export async function chargeByClient(
  ledger: Ledger,
  api: HttpServer,
  { connections, seconds }: Effort,
): Promise<Measured> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(import.meta.dirname, 'client-load.ts')],
    {
      env: {
        FAREBOX_URL: api.url,
        FAREBOX_SECRET_KEY: ledger.developerKey,
        KEYS_FILE: ledger.keysFile,
        CONCURRENCY: String(connections),
        SECONDS: String(seconds),
      },
    },
  );
  return JSON.parse(stdout) as Measured;
}
