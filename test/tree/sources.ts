/** The files of this repository for the tests over the tree, and what the code imports. */
import { globSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

/** Generated, or not in our words. */
const NOT_WRITTEN_HERE =
  /^(package-lock\.json|LICENSE|migrations\/schema\.sql|docs\/(openapi\.json|events\.md)|client\/api\.d\.ts|bench\/results\/.*|test\/histories\/.*\.json)$/;
const HIDDEN_FILES = ['.ci/run', '.env.example', '.dockerignore', '.gitignore'];
const BINARY = /\.(png|ico|woff2|jpg)$/;

/** Every text file that people write here, by its path from the root. */
export function writtenFiles(): string[] {
  const found = globSync('**/*', {
    cwd: ROOT,
    withFileTypes: true,
    exclude: (entry) => entry.name === 'node_modules' || entry.name.startsWith('.'),
  });
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
    .concat(HIDDEN_FILES)
    .filter((path) => !NOT_WRITTEN_HERE.test(path) && !BINARY.test(path))
    .toSorted();
}

export function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** The anchors of a document, as GitHub and the documentation of the API make them of its headings. */
export function headingsOf(path: string): ReadonlySet<string> {
  const titles = [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title);
  return new Set(
    titles.map((title) =>
      title
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

export interface Import {
  /** The importing file. */
  readonly from: string;
  /** A path from the root for files of ours, else the package's specifier. */
  readonly to: string;
  readonly isOurs: boolean;
  readonly isType: boolean;
}

const STATEMENT = /^(?:import|export)\s+(type\s+)?[\w\s{},*$]+?\sfrom\s'([^']+)'/gm;
const BARE_OR_DYNAMIC = /(?:^import\s|\bimport\()'([^']+)'/gm;

export function importsOf(path: string): Import[] {
  const text = read(path);
  const found = [
    ...[...text.matchAll(STATEMENT)].map(([, type, to]) => ({ isType: type !== undefined, to })),
    ...[...text.matchAll(BARE_OR_DYNAMIC)].map(([, to]) => ({ isType: false, to })),
  ];
  return found.map(({ isType, to = '' }) => {
    const isOurs = to.startsWith('.');
    return { from: path, isOurs, isType, to: isOurs ? posix.join(posix.dirname(path), to) : to };
  });
}
