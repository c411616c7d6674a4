/**
 * Builds images with buildah, which needs no engine: `chroot` isolation works inside other containers too. Runs them in
 * namespaces of their own as an engine would that docker-compose.yml tells to confine them: a read-only root, the file
 * systems in memory that it names, no capabilities, no new rights, and an init as process 1 (Debian's package `tini`).
 * The network is the machine's.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../support/stack.ts';

export const ROOT = join(import.meta.dirname, '../..');

const run = promisify(execFile);
const BUILDAH_ENV = { ...process.env, BUILDAH_ISOLATION: 'chroot', STORAGE_DRIVER: 'vfs' };
const OUTPUT_BYTES_MAX = 64 * 2 ** 20;

type Environment = Readonly<Record<string, string>>;

export interface Running {
  /** Process 1 inside, which an engine would signal. */
  readonly pid: number;
  /** Resolves with the exit code. */
  readonly exited: Promise<number | null>;
  /** What it printed so far. */
  output(): string;
}

export interface Container {
  /** The image's settings, as its Dockerfile says. */
  readonly config: {
    readonly User: string;
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly Env: readonly string[];
    readonly Healthcheck: { readonly Test: readonly string[] };
  };
  /** Runs a command as the image's user, with nothing but its rights on files in the way. Rejects when it fails. */
  exec(command: readonly string[]): Promise<string>;
  /** The same, confined. */
  execConfined(command: readonly string[], env?: Environment): Promise<string>;
  /** Starts the entry point with these arguments, confined, and returns once its process exists. */
  start(args: readonly string[], env: Environment): Promise<Running>;
  remove(): Promise<void>;
}

export async function buildah(...args: readonly string[]): Promise<string> {
  const { stdout } = await run('buildah', args, {
    cwd: ROOT,
    env: BUILDAH_ENV,
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  return stdout.trim();
}

/** Builds the Dockerfile. `options` are buildah's, separated by spaces, such as `--volume` for certificates. */
export async function buildImage(name: string, options: string): Promise<void> {
  const given = options.split(' ').filter((option) => option !== '');
  await buildah('bud', '--format', 'docker', ...given, '--tag', name, '.');
}

/** The static one: it needs no library of the image's. */
export const INIT = '/usr/bin/tini-static';
export const HAS_INIT = existsSync(INIT);

/**
 * In mount and process namespaces of its own: makes the root read-only, with what an engine mounts into every
 * container, and continues as the user without any right. Its arguments: the root, the user's id, and the
 * command.
 */
const CONFINE = `set -eu
root=$1 user=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
for path in $IN_MEMORY; do mount -t tmpfs -o mode=1777 tmpfs "$root$path"; done
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for file in /dev/null /dev/zero /dev/random /dev/urandom /etc/hosts /etc/resolv.conf $INIT; do
  [ -e "$root$file" ] || { mkdir -p "$root\${file%/*}" && touch "$root$file"; }
  mount --bind "$file" "$root$file"
done
mount -o remount,bind,ro "$root"
unset IN_MEMORY INIT
exec unshare --root="$root" --wd=/app setpriv --reuid="$user" --regid="$user" --clear-groups \
  --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
`;

/** `inMemory`: the paths at which a service has file systems in memory. */
export async function createContainer(
  image: string,
  inMemory: readonly string[],
): Promise<Container> {
  const name = await buildah('from', '--pull-never', image);
  const inspected = JSON.parse(await buildah('inspect', name)) as {
    readonly Docker: { readonly config: Container['config'] };
  };
  const { config } = inspected.Docker;
  const root = await buildah('mount', name);
  const user = await buildah('run', name, '--', 'id', '--user');
  const init = HAS_INIT ? [INIT, '--'] : [];
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child'];
  const confine = ['sh', '-c', CONFINE, 'confine', root, user, ...init];
  const confined = (command: readonly string[]) => [...namespaces, '--', ...confine, ...command];
  const environment = (env: Environment) => ({
    ...Object.fromEntries(config.Env.map((line) => line.split(/=(.*)/s).slice(0, 2))),
    ...env,
    IN_MEMORY: inMemory.join(' '),
    INIT: HAS_INIT ? INIT : '',
  });
  return {
    config,
    exec: (command) => buildah('run', name, '--', ...command),
    execConfined: async (command, env = {}) => {
      const options = { env: environment(env), maxBuffer: OUTPUT_BYTES_MAX };
      return (await run('unshare', confined(command), options)).stdout.trim();
    },
    start: async (args, env) => {
      const child = spawn('unshare', confined([...config.Entrypoint, ...args]), {
        env: environment(env),
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let printed = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (data: Buffer) => (printed += data.toString()));
      let ended = false;
      const exited = new Promise<number | null>((resolve) => {
        child.once('exit', (code) => {
          ended = true;
          resolve(code);
        });
      });
      const program = HAS_INIT ? INIT : (config.Entrypoint[0] as string);
      const pid = await until(async () => {
        if (ended) throw new Error(`it ended: ${printed}`);
        return findInside(child.pid as number, basename(program));
      });
      return { pid, exited, output: () => printed };
    },
    remove: async () => void (await buildah('rm', name)),
  };
}

/** The descendant that runs the program. */
async function findInside(ancestor: number, program: string): Promise<number | undefined> {
  const parents = new Map<number, number>();
  const programs = new Map<number, string>();
  for (const entry of await readdir('/proc')) {
    const pid = Number(entry);
    if (!Number.isInteger(pid)) continue;
    try {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
      parents.set(pid, Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
      programs.set(pid, (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0')[0] ?? '');
    } catch {
      // It ended meanwhile.
    }
  }
  for (const [pid, name] of programs) {
    if (basename(name) !== program) continue;
    for (let at = parents.get(pid); at !== undefined; at = parents.get(at)) {
      if (at === ancestor) return pid;
    }
  }
  return undefined;
}
