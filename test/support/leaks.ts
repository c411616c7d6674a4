/**
 * Secrets that leaked during a whole test run: every log in the run's folder and everything that Temporal
 * stored is searched for keys, and for the secrets that the run's processes and sessions were given. Replies
 * are searched in contract.ts.
 */
import { appendFileSync, createReadStream } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { kindOfKey } from '../../src/domain/api-keys.ts';

const GIVEN = 'given-secrets';
/** Shorter ones, such as `sk_test_none`, are no secrets, and occur by chance. */
const LENGTH_MIN = 16;
const WORD = /[\w-]{16,}/g;
/** Longer than every secret: a piece of a file begins with the end of the piece before. */
const OVERLAP = 512;

const SECRET_SETTINGS = /^(MASTER_SECRET|STRIPE_SECRET_KEY|(STRIPE|SIMULATOR)_WEBHOOK_SECRET)$/;

/** Notes what a process of the run is given. */
export function noteSecretsOf(env: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(env)) {
    if (SECRET_SETTINGS.test(name)) noteSecret(value);
    if (name === 'DATABASE_URL' && value) noteSecret(decodeURIComponent(new URL(value).password));
  }
}

export function noteSecret(value: string | undefined): void {
  const folder = process.env['TEST_FOLDER'];
  if (folder && value) appendFileSync(join(folder, GIVEN), `${value}\n`);
}

/** Keys of Farebox, known by their checksum. */
export function keysIn(text: string): string[] {
  return (text.match(WORD) ?? []).filter((word) => kindOfKey('fare', word) !== undefined);
}

/** In the run's folder and that of its servers' data. Each with its file and the beginning of the secret. */
export async function findLeaks(folder: string, dataFolder: string): Promise<string[]> {
  const noted = await readFile(join(folder, GIVEN), 'utf8').catch(() => '');
  const given = new Set(noted.split('\n').filter((secret) => secret.length >= LENGTH_MIN));
  const logs = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.log'));
  const stored = (await readdir(dataFolder, { recursive: true })).filter((name) =>
    /^temporal\/.*\.db(-wal)?$/.test(name),
  );
  const files = [
    ...logs.map((name) => ({ name, path: join(folder, name) })),
    ...stored.map((name) => ({ name, path: join(dataFolder, name) })),
  ];
  const leaks: string[] = [];
  for (const { name, path } of files) {
    for (const secret of await secretsInFile(path, given)) {
      leaks.push(`${name} contains ${secret.slice(0, 20)}...`);
    }
  }
  return leaks;
}

async function secretsInFile(path: string, given: ReadonlySet<string>): Promise<Set<string>> {
  const found = new Set<string>();
  let end = '';
  for await (const piece of createReadStream(path, 'latin1')) {
    const text = end + String(piece);
    for (const word of text.match(WORD) ?? []) {
      if (given.has(word) || kindOfKey('fare', word) !== undefined) found.add(word);
    }
    end = text.slice(-OVERLAP);
  }
  return found;
}
