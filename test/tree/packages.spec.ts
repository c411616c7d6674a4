/** The packages that we depend on: their licenses, the bill of materials, and the check for known vulnerabilities. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { read, ROOT } from './sources.ts';

interface Locked {
  readonly version: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly link?: boolean;
}

/** Licenses without conditions on works that use the package, beyond naming its authors. */
const PERMISSIVE = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'PSF-2.0',
  'Python-2.0',
  'Unlicense',
  'Zlib',
];
/** For tools, which we run and do not ship. */
const FOR_TOOLS = [...PERMISSIVE, 'LGPL-3.0-or-later', 'MPL-2.0'];
/** Licenses that a package states elsewhere than npm expects, and data under a license of its own. */
const LOOKED_UP: Readonly<Record<string, string>> = {
  // Its LICENSE file is the Unlicense. The bundler of workflows uses it.
  unionfs: 'Unlicense',
};
/** Data on browsers, which the bundler of workflows uses unchanged: to be attributed. */
const DATA = { 'caniuse-lite': 'CC-BY-4.0' } as const;
const REPORT_AT = '/-/npm/v1/security/advisories/bulk';

const { packages } = JSON.parse(read('package-lock.json')) as {
  packages: Readonly<Record<string, Locked>>;
};
const installed = Object.entries(packages)
  .filter(([path, { link }]) => path.includes('node_modules/') && !link)
  .map(([path, locked]) => ({ name: path.split('node_modules/').at(-1) ?? '', ...locked }));

describe('the packages', () => {
  it('have licenses on the list: permissive ones, and for tools weak copyleft too', () => {
    const refused = installed
      .filter(({ name, license, dev }) => {
        const named = license ?? LOOKED_UP[name];
        if (named !== undefined && DATA[name as keyof typeof DATA] === named) return false;
        return !isAllowed(named, dev ? FOR_TOOLS : PERMISSIVE);
      })
      .map(({ name, version, license }) => `${name}@${version}: ${license ?? 'no license'}`);
    assert.deepEqual(refused, []);
  });

  it('are refused without a license, and under one that is not on the list', () => {
    for (const license of ['MIT', '(MIT OR GPL-3.0-only)', 'MIT AND ISC']) {
      assert.ok(isAllowed(license, PERMISSIVE), license);
    }
    for (const license of [undefined, 'GPL-3.0-only', 'MIT AND GPL-3.0-only', 'UNLICENSED']) {
      assert.ok(!isAllowed(license, PERMISSIVE), license);
    }
  });

  it('are all in the bill of materials of `npm run sbom`, with their versions', async () => {
    const { stdout } = await run('npm', ['run', '--silent', 'sbom']);
    const bill = JSON.parse(stdout) as {
      bomFormat: string;
      components: readonly { purl: string }[];
    };
    assert.equal(bill.bomFormat, 'CycloneDX');
    const listed = new Set(
      bill.components.map(({ purl }) => decodeURIComponent(purl.replace('pkg:npm/', ''))),
    );
    assert.ok(installed.length > 500);
    const missing = installed
      .map(({ name, version }) => `${name}@${version}`)
      .filter((each) => !listed.has(each));
    assert.deepEqual(missing, []);
  });

  for (const [severity, code] of [
    ['critical', 1],
    ['low', 0],
  ] as const) {
    it(`with a known ${severity} vulnerability ${code ? 'fail' : 'pass'} the check`, async () => {
      const { stdout, exitCode } = await auditAt((request, response) => {
        const koa = {
          id: 1,
          url: 'https://advisory.example',
          title: 'A',
          vulnerable_versions: '*',
        };
        response.writeHead(request.url === REPORT_AT ? 200 : 404);
        response.end(
          request.url === REPORT_AT ? JSON.stringify({ koa: [{ ...koa, severity }] }) : '{}',
        );
      });
      assert.match(stdout, new RegExp(`^${severity}: koa`, 'm'));
      assert.equal(exitCode, code);
    });
  }

  it('pass the check with a warning at a registry that does not answer, unless it has to', async () => {
    const open = await auditAt(refuse);
    assert.match(open.stderr, /Vulnerabilities were not checked.*405/);
    assert.equal(open.exitCode, 0);
    assert.equal((await auditAt(refuse, '--required')).exitCode, 1);
  });
});

const refuse: RequestListener = (_, response) => response.writeHead(405).end('{}');

/** An expression of SPDX: of `OR` one license has to be allowed, of `AND` all. */
function isAllowed(expression: string | undefined, allowed: readonly string[]): boolean {
  return (expression ?? '')
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((all) => all.split(' AND ').every((license) => allowed.includes(license)));
}

async function auditAt(registry: RequestListener, ...args: string[]) {
  const cache = await mkdtemp(join(tmpdir(), 'farebox-npm-'));
  const server = createServer(registry).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    const script = join(ROOT, 'scripts/audit-packages.ts');
    return await run(process.execPath, [script, ...args], {
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_fetch_retries: '0',
      // npm keeps what it has learned about a package's dependents.
      npm_config_cache: cache,
    });
  } finally {
    server.closeAllConnections();
    server.close();
    await rm(cache, { recursive: true });
  }
}

function run(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ stdout: string; stderr: string; exitCode: unknown }> {
  return new Promise((resolve) => {
    const options = { cwd: ROOT, env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 };
    execFile(program, args, options, (error, stdout, stderr) =>
      resolve({ stdout, stderr, exitCode: error?.code ?? 0 }),
    );
  });
}
