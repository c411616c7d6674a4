/**
 * The Dockerfile's base image, made on this machine where no registry of images can be reached: Debian by
 * `debootstrap`, with the Node that runs this, its npm, the user `node`, and this machine's certificates.
 * Needs root.
 */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { buildah, ROOT } from './container.ts';

const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

const run = promisify(execFile);

/** Under the name that the Dockerfile builds from. */
export async function makeBaseImage(): Promise<void> {
  const dockerfile = await readFile(join(ROOT, 'Dockerfile'), 'utf8');
  const [, image = '', suite = ''] = /^FROM (node:[\d.]+-(\w+)-slim)$/m.exec(dockerfile) ?? [];
  const root = await mkdtemp(join(tmpdir(), 'farebox-base-'));
  const at = (path: string) => join(root, path);
  try {
    await run('debootstrap', ['--variant=minbase', '--include=ca-certificates', suite, root]);
    await run('chmod', ['755', root]);
    await cp(process.execPath, at('usr/local/bin/node'));
    const { stdout: npm } = await run('sh', ['-c', 'command -v npm']);
    const npmFolder = dirname(dirname(await realpath(npm.trim())));
    await cp(npmFolder, at('usr/local/lib/node_modules/npm'), { recursive: true });
    await symlink('../lib/node_modules/npm/bin/npm-cli.js', at('usr/local/bin/npm'));
    await run('chroot', [root, 'groupadd', '--gid', '1000', 'node']);
    const user = ['--uid', '1000', '--gid', 'node', '--create-home', 'node'];
    await run('chroot', [root, 'useradd', ...user]);
    await cp(process.env['NODE_EXTRA_CA_CERTS'] ?? CERTIFICATES, at(CERTIFICATES));
    await writeFile(at('usr/local/etc/npmrc'), `cafile=${CERTIFICATES}\n`);
    const container = await buildah('from', 'scratch');
    await buildah('add', container, root, '/');
    await buildah('commit', '--format', 'docker', container, `docker.io/library/${image}`);
    await buildah('rm', container);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}
