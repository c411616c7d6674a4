/**
 * Builds one program of src/cli.ts, with its packages in it. The image runs it, and tests start their processes with
 * it: a command takes less than half of the CPU time and an API two thirds, because Node finds, reads and links a
 * dozen files instead of a thousand.
 */
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { ROOT } from '../src/root.ts';

/** Everything that may be in it. Its folder is named by a hash of these files. */
const SOURCES = [
  '{src,activities,workflows}/**/*.ts',
  'scripts/build-program.ts',
  'package-lock.json',
];

/** Native code, and what shares types with it at run time. */
const NOT_BUNDLED = ['@temporalio/*'];

/** Packages of CommonJS require the modules of Node. */
const REQUIRE = `import { createRequire as requireFrom } from 'node:module';
const require = requireFrom(import.meta.url);`;

/**
 * Returns the path of the program. Without a folder, it is built once for each version of the sources. Safe when
 * several processes build at once.
 */
export async function buildProgram(folder = cached()): Promise<string> {
  const program = join(folder, 'cli.mjs');
  if (existsSync(program)) return program;
  const draft = `${folder}.${process.pid}`;
  try {
    await build({
      entryPoints: { cli: join(ROOT, 'src/cli.ts') },
      outdir: draft,
      outExtension: { '.js': '.mjs' },
      platform: 'node',
      target: 'node24',
      format: 'esm',
      bundle: true,
      // A command loads only its own code.
      splitting: true,
      external: [...NOT_BUNDLED, 'pg-native'],
      banner: { js: REQUIRE },
      legalComments: 'none',
      logLevel: 'warning',
    });
    mkdirSync(dirname(folder), { recursive: true });
    renameSync(draft, folder);
  } catch (error) {
    // Another process was done a moment earlier, with the same sources.
    if (!existsSync(program)) throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return program;
}

function cached(): string {
  const hash = createHash('sha256');
  for (const file of globSync(SOURCES, { cwd: ROOT }).toSorted()) {
    hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)));
  }
  return join(ROOT, '.built', `program-${hash.digest('hex').slice(0, 16)}`);
}
