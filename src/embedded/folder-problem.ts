/** Says in one sentence why a start cannot keep its files where it was told to, in place of the system's error. */
import { accessSync, constants, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { ChildError } from './child.ts';

const ADVICE = 'choose another directory with --data-dir';
const NOT_ALLOWED = `this user may not write there: give it the directory, or ${ADVICE}`;
const FULL = `its disk is full, or the quota of this user is used up: free some space, or ${ADVICE}`;

/** By the system's codes. */
const REASONS: Readonly<Record<string, string>> = {
  EACCES: NOT_ALLOWED,
  EPERM: NOT_ALLOWED,
  EROFS: `it is on a read-only file system: ${ADVICE}`,
  ENOSPC: FULL,
  EDQUOT: FULL,
  ENOTDIR: `a part of this path is a file: ${ADVICE}`,
  EEXIST: `this is a file: ${ADVICE}`,
};
/** Other files may be missing for other reasons. */
const MKDIR_REASONS: Readonly<Record<string, string>> = {
  ...REASONS,
  ENOENT: `its file system has no place for new directories: ${ADVICE}`,
};

/** What our programs write about a full disk. */
const FULL_DISK = /No space left on device|Disk quota exceeded|database or disk is full/;
/** With less, a program may fail without a place to write why. */
const FREE_BYTES_MIN = 1_000_000;

/** Throws unless this user may write into the directory or, where it does not exist yet, into the one above. */
export function refuseUnwritable(dataDir: string): void {
  let path = dataDir;
  while (statSync(path, { throwIfNoEntry: false }) === undefined) path = dirname(path);
  // mkdir and SQLite name other reasons than these.
  accessSync(path, constants.W_OK | constants.X_OK);
}

/** The error to show for this one, which a start on the directory failed with. */
export function explainFolderProblem(error: unknown, dataDir: string): unknown {
  if (!(error instanceof Error)) return error;
  const { code = '', syscall, address } = error as NodeJS.ErrnoException & { address?: string };
  const isOfFiles = syscall !== undefined && address === undefined;
  const reasons = syscall === 'mkdir' ? MKDIR_REASONS : REASONS;
  const reason = isOfFiles ? reasons[code] : undefined;
  if (reason !== undefined) return unusable(dataDir, withOwner(reason, dataDir), error);
  const saysFull = FULL_DISK.test(error.message);
  if (saysFull || (error instanceof ChildError && isFull(dataDir)))
    return unusable(dataDir, FULL, error);
  return error;
}

function unusable(dataDir: string, reason: string, cause: Error): Error {
  return new Error(`cannot use ${dataDir} as the data directory: ${reason}`, { cause });
}

function withOwner(reason: string, dataDir: string): string {
  const owner = statOf(dataDir)?.uid;
  if (reason !== NOT_ALLOWED || owner === undefined || owner === process.getuid?.()) return reason;
  return `it belongs to another user (${owner}): start as that user, or ${ADVICE}`;
}

function statOf(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined; // a directory above is closed to us
  }
}

function isFull(dataDir: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dataDir);
    return bavail * bsize < FREE_BYTES_MIN;
  } catch {
    return false;
  }
}
