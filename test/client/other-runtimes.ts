/** Bun and Deno as npm installs them: scripts of their packages, which do not run here, would put the commands in place. */
import { execFile, type ExecFileOptions } from 'node:child_process';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';

const { resolve } = createRequire(import.meta.url);
const { platform, arch } = process;

const BUN = resolve(`@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}/bin/bun`);
const DENO = resolve(`@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}/deno`);

interface Ran {
  readonly stdout: string;
}

export function runBun(script: string, options: ExecFileOptions = {}): Promise<Ran> {
  return promisify(execFile)(BUN, [script], { ...options, encoding: 'utf8' });
}

/** With what the client needs and no more: reading its files and the environment, and the network. */
export function runDeno(
  script: string,
  { env = {}, ...options }: ExecFileOptions = {},
): Promise<Ran> {
  const allowed = ['--allow-read', '--allow-env', '--allow-net'];
  const local = ['--node-modules-dir=manual', '--no-lock', '--cached-only', '--quiet'];
  return promisify(execFile)(DENO, ['run', ...allowed, ...local, script], {
    ...options,
    // It asks a registry for newer versions otherwise.
    env: { ...env, DENO_NO_UPDATE_CHECK: '1' },
    encoding: 'utf8',
  });
}
