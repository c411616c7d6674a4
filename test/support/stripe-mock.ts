/**
 * stripe-mock, which checks each request against Stripe's own OpenAPI description: STRIPE_MOCK, or the one on PATH,
 * or built once by Go and kept in the user's cache.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const VERSION = 'v0.203.0';
export const BUILD_TIMEOUT_MS = 300_000;

/** Undefined without the program and without Go to build it. Throws when Go cannot. */
export function findStripeMock(): string | undefined {
  const given = process.env['STRIPE_MOCK'] ?? 'stripe-mock';
  if (isThere(given, '-version')) return given;
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  const directory = join(cache, 'farebox', `stripe-mock-${VERSION}`);
  const program = join(directory, 'stripe-mock');
  if (existsSync(program)) return program;
  if (!isThere('go', 'version')) return undefined;
  mkdirSync(directory, { recursive: true });
  execFileSync('go', ['install', `github.com/stripe/stripe-mock@${VERSION}`], {
    env: { ...process.env, GOBIN: directory },
    timeout: BUILD_TIMEOUT_MS,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return program;
}

function isThere(program: string, argument: string): boolean {
  return spawnSync(program, [argument], { stdio: 'ignore' }).status === 0;
}
