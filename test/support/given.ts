/** What the global set-up (setup.ts) gives to every file, and names that no other file has. */
import { randomBytes } from 'node:crypto';

/** A variable that the global set-up left in the environment. */
export function given(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: mocha loads test/support/setup.ts first`);
  return value;
}

export function unique(): string {
  return randomBytes(6).toString('hex');
}
