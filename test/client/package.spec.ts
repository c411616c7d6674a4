/** The package as it is published: packed, and installed into empty projects. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { build, type BuildOptions } from 'esbuild';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { runBun, runDeno, runNode20 } from './other-runtimes.ts';

const ROOT = join(import.meta.dirname, '../..');
const ENTRIES = [
  '',
  '/mcp',
  '/express',
  '/fastify',
  '/fetch',
  '/hono',
  '/koa',
  '/testing',
  '/webhooks',
];
const INTEGRATIONS = ['mcp', 'express', 'fastify', 'fetch', 'hono', 'koa'];
const INTEGRATION_LINES = 60;
const BYTES_MAX = 20_000;

const run = promisify(execFile);

/** Uses one entry of each kind, like a program would. */
const PROGRAM = `
import { Farebox, FareboxConsumer, usd } from '@farebox/client';
import { paidTool } from '@farebox/client/mcp';
import { paidRoute } from '@farebox/client/fetch';
const farebox = new Farebox({ secretKey: 'fare_sk_live_x', baseUrl: 'http://127.0.0.1:9' });
const consumer = new FareboxConsumer({ consumerKey: 'fare_ck_live_x', baseUrl: 'http://127.0.0.1:9' });
const tool = paidTool(farebox, { tool: 'x', price: usd('0.07').times(3) }, () => ({ content: [] }));
const route = paidRoute(farebox, { tool: 'x', price: 1 }, () => new Response());
console.log([typeof farebox.charge, typeof consumer.balance, typeof tool, typeof route].join());
`;
/** Calls whose arguments have types that a program has already, such as a path from its environment. */
const CALLS = `
import { Farebox, type Lease, type LeasedCharge, type LeaseOptions } from '@farebox/client';
import { verifyWebhook } from '@farebox/client/webhooks';
declare const journal: string | undefined;
declare const request: Request;
const options: LeaseOptions = { apiKey: 'fare_ck_live_x', tools: ['x'], amount: 1, journal };
const farebox = new Farebox();
const lease = await farebox.lease(options);
const { sequence }: LeasedCharge = await lease.charge({ tool: 'x' });
const kept: Lease<Promise<LeasedCharge>> = await farebox.lease({ ...options, journal: 'calls' });
const plain: Lease = await farebox.lease({ apiKey: 'fare_ck_live_x', tools: ['x'], amount: 1 });
const body: ArrayBuffer = await request.arrayBuffer();
const event = await verifyWebhook({ body, headers: request.headers, secret: 'whsec_x' });
export const results = [sequence, kept.leaseId, plain.leaseId, event.id];
`;
const PRINTS = 'function,function,function,function\n';

describe('client: the package', () => {
  let folder: string;
  let tarball: string;
  let files: string[];

  const bundle = async (options: BuildOptions) => {
    const { outputFiles = [] } = await build({
      absWorkingDir: folder,
      bundle: true,
      minify: true,
      format: 'esm',
      write: false,
      ...options,
    });
    return outputFiles[0]?.contents ?? assert.fail('no bundle');
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'farebox-client-'));
    const pack = ['pack', '--json', '--pack-destination', folder];
    const { stdout } = await run('npm', pack, { cwd: join(ROOT, 'client') });
    const [packed] = JSON.parse(stdout) as { filename: string; files: { path: string }[] }[];
    assert.ok(packed);
    tarball = join(folder, packed.filename);
    files = packed.files.map(({ path }) => path);
    await writeFile(join(folder, 'package.json'), '{"private":true}');
    await writeFile(join(folder, 'program.mts'), PROGRAM);
    await writeFile(join(folder, 'program.mjs'), PROGRAM);
    await writeFile(join(folder, 'calls.mts'), CALLS);
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: folder });
    const bundled = await bundle({ entryPoints: ['program.mjs'], platform: 'node' });
    await writeFile(join(folder, 'bundled.mjs'), bundled);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it('contains its license, changelog and README, and nothing that users do not need', () => {
    for (const name of ['LICENSE', 'CHANGELOG.md', 'README.md', 'package.json']) {
      assert.ok(files.includes(name), name);
    }
    const others = files.filter((path) => !/^[\w-]+\.(js|d\.ts)$/.test(path));
    assert.deepEqual(others.toSorted(), ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']);
  });

  it('has the license of the repository', async () => {
    const [ours, whole] = await Promise.all(
      ['client/LICENSE', 'LICENSE'].map((path) => readFile(join(ROOT, path), 'utf8')),
    );
    assert.equal(ours, whole);
  });

  it('has a repository if it is published with provenance, because npm refuses it otherwise', async () => {
    const text = await readFile(join(ROOT, 'client/package.json'), 'utf8');
    const { publishConfig = {}, repository } = JSON.parse(text) as {
      publishConfig?: { provenance?: boolean };
      repository?: { url: string };
    };
    assert.ok(!publishConfig.provenance || repository?.url);
  });

  it('passes publint', async () => {
    const { messages, pkg } = await publint({ pkgDir: join(ROOT, 'client'), strict: true });
    assert.deepEqual(
      messages.map((message) => formatMessage(message, pkg)),
      [],
    );
  });

  it('has the right types at each entry, for ES modules and bundlers', async () => {
    const bytes = new Uint8Array(await readFile(tarball));
    const checked = await checkPackage(createPackageFromTarballData(bytes));
    assert.ok('problems' in checked);
    // Node loads ES modules by require() since 20.19, and "node10" has no exports at all.
    const problems = checked.problems.filter(
      (problem) =>
        !('resolutionKind' in problem) ||
        !['node10', 'node16-cjs'].includes(problem.resolutionKind),
    );
    assert.deepEqual(problems, []);
  });

  for (const [name, runProgram] of Object.entries({ Bun: runBun, Deno: runDeno })) {
    it(`is imported under ${name}`, async () => {
      const { stdout } = await runProgram('program.mjs', { cwd: folder });
      assert.equal(stdout, PRINTS);
    });
  }

  const nodes: Record<string, typeof runNode20> = {
    'Node 20': runNode20,
    'Node 24': (args, options) => run(process.execPath, args, { ...options, encoding: 'utf8' }),
  };
  for (const [name, runNode] of Object.entries(nodes)) {
    it(`is imported under ${name}, bundled by esbuild as well, and required at each entry`, async () => {
      const names = [...ENTRIES, '/package.json'].map((entry) => `@farebox/client${entry}`);
      const script = `${JSON.stringify(names)}.forEach((name) => console.log(typeof require(name)))`;
      const outputs = await Promise.all(
        [['program.mjs'], ['bundled.mjs'], ['-e', script]].map(async (args) => {
          const { stdout } = await runNode(args, { cwd: folder });
          return stdout;
        }),
      );
      assert.deepEqual(outputs, [PRINTS, PRINTS, 'object\n'.repeat(names.length)]);
    });
  }

  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ] as const) {
    it(`is compiled by TypeScript with moduleResolution ${moduleResolution}`, async () => {
      const imports = ENTRIES.map(
        (entry, n) => `import * as m${n} from '@farebox/client${entry}';`,
      );
      const uses = `export const all = [${ENTRIES.map((_, n) => `m${n}`).join()}];`;
      await writeFile(join(folder, 'entries.mts'), `${imports.join('\n')}\n${uses}\n`);
      // A CommonJS module, where it can be one: `bundler` takes each for an ES module.
      await writeFile(join(folder, 'required.cts'), `${imports.join('\n')}\n${uses}\n`);
      const strict = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--types', ''];
      const target = ['--target', 'es2022', '--lib', 'es2024,dom', '--module', module];
      const options = [...strict, ...target, '--moduleResolution', moduleResolution];
      await run(
        process.execPath,
        [
          join(ROOT, 'node_modules/typescript/bin/tsc'),
          ...options,
          'program.mts',
          'calls.mts',
          'entries.mts',
          'required.cts',
        ],
        { cwd: folder },
      ).catch((error: { stdout: string }) => assert.fail(error.stdout));
    });
  }

  it('is bundled for an edge runtime without modules of Node', async () => {
    const edge = await bundle({ entryPoints: ['program.mjs'], conditions: ['worker'] });
    assert.doesNotMatch(new TextDecoder().decode(edge), /node:/);
  });

  it('has an integration for each framework, of fewer than 60 lines over one core', async () => {
    for (const name of INTEGRATIONS) {
      const source = await readFile(join(ROOT, `client/${name}.js`), 'utf8');
      assert.ok(source.split('\n').length - 1 < INTEGRATION_LINES, name);
      assert.match(source, /from '\.\/paid\.js'/, name);
    }
  });

  it('is small: without the integrations under 20 kB, gzipped', async () => {
    const contents = "export * from '@farebox/client'";
    const all = await bundle({ stdin: { contents, resolveDir: folder }, conditions: ['worker'] });
    assert.ok(gzipSync(all).length < BYTES_MAX, `${gzipSync(all).length} bytes`);
  });
});
