/** What the commands about keys of an account and about spend keys share. */
import { InvalidArgumentError, Option } from 'commander';
import { uuidOf } from '../domain/ids.ts';
import { CommandError } from './database-command.ts';

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;
const OVERLAP_SECONDS_MAX = 30 * SECONDS.d;

export function overlapOption(): Option {
  return new Option('--overlap <time>', 'how long the old key keeps working: 0, 90s, 15m, 24h, 7d')
    .default(0)
    .argParser(overlapOf);
}

/** In seconds. */
export function overlapOf(text: string): number {
  const [, number, unit] = /^(\d{1,6})([smhd]?)$/.exec(text) ?? [];
  const seconds = Number(number) * SECONDS[(unit || 's') as keyof typeof SECONDS];
  if (number !== undefined && seconds <= OVERLAP_SECONDS_MAX) return seconds;
  throw new InvalidArgumentError(
    'It must be a duration such as 90s, 15m, 24h or 7d, at most 30 days.',
  );
}

/** `list` is the command that shows the ids. */
export function uuidOfKey(id: string, list: string): string {
  const uuid = uuidOf('key', id);
  if (uuid === undefined) throw noSuchKey(id, list);
  return uuid;
}

export function noSuchKey(id: string, list: string): CommandError {
  return new CommandError(`No active key ${id}. Run \`farebox ${list}\` to see key ids.`);
}

/** What to do when it is unknown whether a key was made. */
export function lookFor(list: string): string {
  return `Look for it in \`farebox ${list}\`, and revoke it if it is there: it was not shown.`;
}

/** `list` and `create` are commands. */
export function ifRolled(overlapSeconds: number, list: string, create: string): string {
  return overlapSeconds > 0
    ? lookFor(list)
    : `Repeat the command. If it finds no active key, the key was replaced: create another with \`farebox ${create}\`.`;
}

export const IF_REVOKED = 'Repeat the command. If it finds no active key, the key was revoked.';
