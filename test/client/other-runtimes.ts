/**
 * Bun, Deno and the oldest Node that the client supports, as npm installs them: scripts of their packages, which do not
 * run here, would put the commands in place.
 */
import { execFile, type ExecFileOptions } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';

const { resolve } = createRequire(import.meta.url);
const { platform, arch } = process;
const run = promisify(execFile);

const BUN = resolve(`@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}/bin/bun`);

const DENO_PACKAGE = `@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`;
const DENO_VERSION = '2.9.6';
const NODE_20_PACKAGE = `node-${platform}-${arch}`;
const NODE_20_VERSION = '20.19.6';
const CACHE = join(import.meta.dirname, '../../node_modules/.cache');

interface Ran {
  readonly stdout: string;
}

export function runBun(script: string, options: ExecFileOptions = {}): Promise<Ran> {
  return run(BUN, [script], { ...options, encoding: 'utf8' });
}

/** With what the client needs and no more: reading its files and the environment, and the network. */
export async function runDeno(
  script: string,
  { env = {}, ...options }: ExecFileOptions = {},
): Promise<Ran> {
  const allowed = ['--allow-read', '--allow-env', '--allow-net'];
  const local = ['--node-modules-dir=manual', '--no-lock', '--cached-only', '--quiet'];
  const deno = await installed(DENO_PACKAGE, DENO_VERSION, 'deno');
  return run(deno, ['run', ...allowed, ...local, script], {
    ...options,
    // It asks a registry for newer versions otherwise.
    env: { ...env, DENO_NO_UPDATE_CHECK: '1' },
    encoding: 'utf8',
  });
}

/** The Node that runs the tests is 24. */
export async function runNode20(
  args: readonly string[],
  options: ExecFileOptions = {},
): Promise<Ran> {
  const node = await installed(NODE_20_PACKAGE, NODE_20_VERSION, 'bin/node');
  return run(node, args, { ...options, encoding: 'utf8' });
}

/**
 * Installs the package on first use and returns the path of its program. package.json does not list these, because the
 * lock file would need the packages of every platform, and some registries do not carry all of them.
 */
async function installed(name: string, version: string, program: string): Promise<string> {
  const folder = join(CACHE, `${name.replaceAll('/', '-')}-${version}`);
  if (!existsSync(folder)) {
    await mkdir(CACHE, { recursive: true });
    const unfinished = await mkdtemp(`${folder}-`);
    const quiet = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts'];
    await run('npm', ['install', '--prefix', unfinished, ...quiet, `${name}@${version}`]);
    // Another spec may have installed it meanwhile.
    await rename(unfinished, folder).catch(() => rm(unfinished, { recursive: true }));
  }
  return join(folder, 'node_modules', name, program);
}
