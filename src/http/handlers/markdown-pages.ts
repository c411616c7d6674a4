/**
 * The documentation as Markdown, for programs and language models: the guides, each at its path in this
 * repository, so that the links between them work, and the pages about error codes.
 */
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Context, Middleware } from 'koa';
import { ERRORS, type ErrorCode } from '../../domain/errors.ts';
import { ROOT } from '../../root.ts';
import type { Endpoint } from '../endpoint.ts';
import { noSuch } from '../look-ups.ts';
import { respond } from '../respond.ts';
import { EFFECTS_OF_STATUSES, factsOf, isCode } from './error-facts.ts';

const READMES = ['README.md', 'client/README.md', 'examples/README.md'];
const FOLDERS = ['docs', 'docs/decisions'];
/** The documents change only with a release. */
const HEADERS = { 'Cache-Control': 'public, max-age=300', 'Access-Control-Allow-Origin': '*' };

interface Route {
  readonly method: 'get';
  readonly path: string;
  readonly middleware: Middleware;
}

export function markdownPages(endpoints: readonly Endpoint[]): readonly Route[] {
  const pages = new Set([...READMES, ...FOLDERS.flatMap(pagesIn)]);
  const guide: Middleware = async (ctx) => {
    const path = ctx.path.slice(1);
    if (!pages.has(path)) throw noSuch('page');
    serve(ctx, await readFile(join(ROOT, path), 'utf8'));
  };
  const errors = errorsText();
  return [
    get('/docs/errors.md', async (ctx) => serve(ctx, errors)),
    get('/docs/errors/:code.md', async (ctx) => {
      const code = ctx.path.slice(ctx.path.lastIndexOf('/') + 1, -'.md'.length);
      if (!isCode(code)) throw noSuch('error code');
      serve(ctx, errorText(code, endpoints));
    }),
    ...FOLDERS.map((folder) => get(`/${folder}/:name.md`, guide)),
    ...READMES.map((path) => get(`/${path}`, guide)),
  ];
}

function get(path: string, middleware: Middleware): Route {
  return { method: 'get', path, middleware };
}

function pagesIn(folder: string): string[] {
  const names = readdirSync(join(ROOT, folder)).filter((name) => name.endsWith('.md'));
  return names.map((name) => `${folder}/${name}`);
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
