/**
 * Builds and runs images with buildah, which needs no engine: `chroot` isolation works inside other containers too. The
 * network is the machine's. What an engine would add (a read-only root, no capabilities) is not tried here.
 */
import { execFile, spawn } from 'node:child_process';
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
  /** The process inside, not buildah's. */
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
  /** Runs a command as the image's user to its end. Rejects when it fails. */
  exec(command: readonly string[], env?: Environment): Promise<string>;
  /** Starts the entry point with these arguments, and returns once its process exists. */
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

export async function createContainer(image: string): Promise<Container> {
  const name = await buildah('from', '--pull-never', image);
  const inspected = JSON.parse(await buildah('inspect', name)) as {
    readonly Docker: { readonly config: Container['config'] };
  };
  const { config } = inspected.Docker;
  const runArgs = (command: readonly string[], env: Environment) => [
    'run',
    ...Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
    name,
    '--',
    ...command,
  ];
  return {
    config,
    exec: (command, env = {}) => buildah(...runArgs(command, env)),
    start: async (args, env) => {
      const child = spawn('buildah', runArgs([...config.Entrypoint, ...args], env), {
        env: BUILDAH_ENV,
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
      const pid = await until(async () => {
        if (ended) throw new Error(`it ended: ${printed}`);
        return findInside(child.pid as number, config.Entrypoint[0] as string);
      });
      return { pid, exited, output: () => printed };
    },
    remove: async () => void (await buildah('rm', name)),
  };
}

/** The descendant of buildah that runs the program. */
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
