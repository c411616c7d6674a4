/**
 * Builds one program from src/cli.ts, with its packages in it. The image runs it, and tests start it as processes: an
 * API takes three fifths of the CPU time and a short command less than half, because Node reads some fifty files
 * instead of one or two thousand.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Metafile } from 'esbuild';
import { hashOfSources } from '../src/embedded/console-build.ts';
import { ROOT } from '../src/root.ts';

const CACHE = join(ROOT, '.built');
/** Programs of other versions of the sources are removed after this time. */
const KEPT_MS = 24 * 60 * 60 * 1_000;

/** Everything that may be in it. Its folder is named by a hash of these files. */
const SOURCES = [
  '{src,activities,workflows}/**/*.ts',
  'scripts/build-program.ts',
  'package-lock.json',
];

/** Native code, and packages whose classes and metadata Temporal's client and ours exchange. */
const NOT_BUNDLED = ['@temporalio/*', '@grpc/*'];
/** CommonJS that is loaded by `import()`: refuseNamesLost says why it cannot be in the program. */
const LOADED_LATE = ['nodemailer', '@zxcvbn-ts/*'];
/** parseurl calls url.parse, about which Node writes a warning to the log if the caller is not in node_modules. */
const DEPRECATED = ['parseurl'];
/** An optional package of pg. */
const NOT_INSTALLED = ['pg-native'];

/** Packages of CommonJS require the modules of Node. */
const REQUIRE = `import { createRequire as requireFrom } from 'node:module';
const require = requireFrom(import.meta.url);`;

/** The program for tests, built once for each version of the sources. Returns its path. */
export async function cachedProgram(): Promise<string> {
  removeOld();
  for (;;) {
    const hash = hashOfSources(SOURCES);
    const folder = join(CACHE, `program-${hash}`);
    const program = join(folder, 'cli.mjs');
    if (existsSync(program)) return program;
    const draft = join(CACHE, `draft-${randomUUID()}`);
    try {
      await buildProgram(draft);
      // Otherwise a file was saved during the build, and the program may be of neither version.
      if (hashOfSources(SOURCES) === hash) renameSync(draft, folder);
    } catch (error) {
      // Another process was done a moment earlier, with the same sources.
      if (!existsSync(program)) throw error;
    } finally {
      rmSync(draft, { recursive: true, force: true });
    }
  }
}

/** Writes cli.mjs and the parts that it loads into the folder. */
export async function buildProgram(folder: string): Promise<void> {
  const { metafile } = await build({
    entryPoints: { cli: join(ROOT, 'src/cli.ts') },
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    platform: 'node',
    target: 'node24',
    format: 'esm',
    bundle: true,
    // A command loads only its own code.
    splitting: true,
    // Logs, and failures in Temporal, name the classes of errors.
    keepNames: true,
    external: [...NOT_BUNDLED, ...LOADED_LATE, ...DEPRECATED, ...NOT_INSTALLED],
    banner: { js: REQUIRE },
    // The image has no tsconfig.json.
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
    legalComments: 'none',
    logLevel: 'warning',
    metafile: true,
  });
  refuseNamesLost(metafile);
}

/** In a program, `import()` of a CommonJS module returns its default export alone, without the named ones. */
function refuseNamesLost({ inputs }: Metafile): void {
  for (const [path, { imports }] of Object.entries(inputs)) {
    for (const { kind, path: loaded } of imports) {
      if (kind === 'dynamic-import' && inputs[loaded]?.format === 'cjs')
        throw new Error(`${path} loads ${loaded} late: leave its package out of the program`);
    }
  }
}

function removeOld(): void {
  for (const name of existsSync(CACHE) ? readdirSync(CACHE) : []) {
    const folder = join(CACHE, name);
    const builtAt = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - builtAt > KEPT_MS) rmSync(folder, { recursive: true, force: true });
  }
}
