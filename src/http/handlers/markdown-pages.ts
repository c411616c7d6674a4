/**
 * The documentation as Markdown, for programs and language models: the guides with their pictures and examples, each at
 * its path in this repository, so that the links between them work, and the pages about error codes.
 */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join, posix } from 'node:path';
import type { Context, Middleware } from 'koa';
import { ERRORS, type ErrorCode } from '../../domain/errors.ts';
import { ROOT } from '../../root.ts';
import type { Endpoint } from '../endpoint.ts';
import { noSuch } from '../look-ups.ts';
import { respond, respondBytes } from '../respond.ts';
import { EFFECTS_OF_STATUSES, factsOf, isCode } from './error-facts.ts';

/** .dockerignore lets all of them into the image. */
const FILES = [
  'README.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'client/README.md',
  'client/CHANGELOG.md',
  'examples/README.md',
  'examples/mcp-tool-server/README.md',
  'examples/wrangler.json',
];
/** The ending of the files in a folder. */
const FOLDERS = {
  docs: '.md',
  'docs/decisions': '.md',
  'docs/images': '.png',
  examples: '.ts',
} as const;
/** That of ../openapi.ts, which the guides link to. */
export const OPENAPI_PATH = 'docs/openapi.json';
const TYPES: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.json': 'application/json; charset=utf-8',
  '.ts': 'text/plain; charset=utf-8',
};
/** The documents change only with a release. */
const HEADERS = { 'Cache-Control': 'public, max-age=300', 'Access-Control-Allow-Origin': '*' };

interface Route {
  readonly method: 'get';
  readonly path: string;
  readonly middleware: Middleware;
}

export function markdownPages(endpoints: readonly Endpoint[]): readonly Route[] {
  const folders = Object.entries(FOLDERS);
  const files = new Set([
    ...FILES,
    ...globSync(
      folders.map(([folder, ending]) => `${folder}/*${ending}`),
      { cwd: ROOT },
    ),
  ]);
  const file: Middleware = async (ctx) => {
    const path = ctx.path.slice(1);
    if (!files.has(path)) throw noSuch('page');
    const bytes = await readFile(join(ROOT, path));
    const type = TYPES[extname(path)];
    if (type !== undefined) return respondBytes(ctx, type, bytes, HEADERS);
    serve(ctx, withoutDeadLinks(bytes.toString(), path, files));
  };
  const errors = errorsText();
  return [
    get('/docs/errors.md', async (ctx) => serve(ctx, errors)),
    get('/docs/errors/:code.md', async (ctx) => {
      const code = ctx.path.slice(ctx.path.lastIndexOf('/') + 1, -'.md'.length);
      if (!isCode(code)) throw noSuch('error code');
      serve(ctx, errorText(code, endpoints));
    }),
    ...folders.map(([folder, ending]) => get(`/${folder}/:name${ending}`, file)),
    ...FILES.map((path) => get(`/${path}`, file)),
  ];
}

function get(path: string, middleware: Middleware): Route {
  return { method: 'get', path, middleware };
}

/** A link to a file that is not served becomes its text, with the file's path in the repository. */
function withoutDeadLinks(text: string, page: string, files: ReadonlySet<string>): string {
  const link = /!?\[([^\]]*)\]\(([^)#\s:]+)(?:#[^)\s]*)?\)/g;
  return text.replaceAll(link, (shown, words: string, target: string) => {
    const file = posix.join(posix.dirname(page), target);
    if (target.startsWith('/') || file === OPENAPI_PATH || files.has(file)) return shown;
    return `${words} (${words.includes(file) ? '' : `\`${file}\` `}in the repository)`;
  });
}

function serve(ctx: Context, text: string): void {
  respond(ctx, 200, 'text/markdown; charset=utf-8', text, HEADERS);
}

function errorsText(): string {
  const lines = Object.entries(ERRORS).map(
    ([code, [status, meaning]]) => `- [\`${code}\`](/docs/errors/${code}.md) ${status}: ${meaning}`,
  );
  return ['# Error codes', '', EFFECTS_OF_STATUSES, '', ...lines, ''].join('\n');
}

function errorText(code: ErrorCode, endpoints: readonly Endpoint[]): string {
  const { status, type, meaning, effect, returnedBy } = factsOf(code, endpoints);
  const list = returnedBy.map((endpoint) => `- \`${endpoint}\``);
  return [
    `# \`${code}\``,
    '',
    meaning,
    '',
    `- Status: ${status}`,
    `- Type: \`${type}\``,
    `- Effect: ${effect}`,
    '',
    ...(list.length > 0 ? ['Returned by:', '', ...list, ''] : []),
    '[All error codes](/docs/errors.md)',
    '',
  ].join('\n');
}
