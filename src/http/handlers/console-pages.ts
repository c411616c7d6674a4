/**
 * Serves the console's built files. Files below assets/ have a hash in their names and are cached forever; every other
 * path is a page of the application, which is one document. Nothing is loaded from another host.
 */
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Context, Middleware } from 'koa';
import { AUTH_PATH, authMethodOf, SIGN_IN_LINK_PATH } from '../../console/paths.ts';
import { ApiError } from '../../domain/errors.ts';
import { isNestedDeeperThan } from '../../domain/nesting.ts';
import { isStorableText } from '../../domain/storable-text.ts';
import { remembered } from '../../remembered.ts';
import { ROOT } from '../../root.ts';
import { asPage, writeErrorOf } from '../answer-errors.ts';
import { hasBody, readJson } from '../body.ts';
import { invalidField } from '../invalid-field.ts';
import { methodNotAllowed } from '../method-not-allowed.ts';
import { headersOfEvery, redirectTo, requestIdOf, respond } from '../respond.ts';
import type { Api } from '../services.ts';
import { signInLinkPage } from './sign-in-link-page.ts';

const BUILT = join(ROOT, 'console/.dist');
const ASSETS = '/console/assets/';
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Inline styles are allowed, because the components set sizes and colors that way; inline scripts are not. */
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

interface BuiltFile {
  readonly plain: Buffer;
  readonly brotli: Buffer | undefined;
}

export function consolePages(api: Api): Middleware {
  let names: ReadonlySet<string> | undefined;
  const readers = new Map<string, () => Promise<BuiltFile>>();

  const fileOf = (path: string): Promise<BuiltFile> => {
    const reader = readers.get(path) ?? remembered(() => readBuilt(path));
    readers.set(path, reader);
    return reader();
  };

  const { consoleUrl } = api.config;
  const own = new URL(api.config.baseUrl);
  const isElsewhere = new URL(consoleUrl).origin !== own.origin;
  const signInLink = asPage(
    signInLinkPage(api.console, (ctx, body) => handleAuth(api, ctx, JSON.stringify(body))),
  );

  return async (ctx, next) => {
    const { path } = ctx;
    if (isElsewhere && ctx.host === own.host && isPage(ctx)) {
      return redirectTo(ctx, consoleUrl + ctx.url);
    }
    if (path === SIGN_IN_LINK_PATH) {
      refuseOtherMethods(ctx, ['GET', 'HEAD', 'POST']);
      return signInLink(ctx, next);
    }
    if (path.startsWith(`${AUTH_PATH}/`)) {
      const method = authMethodOf(path);
      if (method === undefined) return next();
      // The library answers 404 to some methods, and fails for TRACE.
      refuseOtherMethods(ctx, [method]);
      return handleAuth(api, ctx, hasBody(ctx.req) ? await readAuthBody(ctx) : undefined);
    }
    if (path !== '/' && path !== '/console' && !path.startsWith('/console/')) return next();
    refuseOtherMethods(ctx, ['GET', 'HEAD']);
    if (path === '/') return redirectTo(ctx, '/console/');
    if (!existsSync(join(BUILT, 'index.html'))) {
      throw new ApiError('not_found', 'The console is not built. Run `npm run build:console`.');
    }
    if (!path.startsWith(ASSETS)) {
      return send(ctx, await readBuilt('index.html'), '.html', 'no-cache');
    }
    names ??= new Set(readdirSync(join(BUILT, 'assets')));
    const name = path.slice(ASSETS.length);
    if (!names.has(name)) return askAnother(ctx, name);
    const file = await fileOf(`assets/${name}`);
    send(ctx, file, extname(name), 'public, max-age=31536000, immutable');
  };
}

/** Browsers follow 20. If half of the processes have the file, one page in 65,000 misses it. */
const TRIES_MAX = 16;

/**
 * While one release replaces another, another process may have the file, so the browser asks the same address
 * again, on a new connection. For a file that no process has anymore, the last response is 404, and the page
 * reloads as one of the new release.
 */
function askAnother(ctx: Context, name: string): void {
  const tries = Number(ctx.query['tries'] ?? 0);
  if (!/^[\w-]+\.\w+$/.test(name) || !(tries >= 0 && tries < TRIES_MAX)) {
    throw new ApiError('not_found', 'This path does not exist.');
  }
  respond(ctx, 302, 'text/plain; charset=utf-8', '', {
    Location: `${ASSETS}${name}?tries=${tries + 1}`,
    'Cache-Control': 'no-store',
    Connection: 'close',
  });
}

function refuseOtherMethods({ method }: Context, accepted: readonly string[]): void {
  if (!accepted.includes(method)) throw methodNotAllowed(accepted);
}

/** Far more than a passkey's proof needs. */
const AUTH_BYTES_MAX = 64 * 1024;

/** Whether it asks for the console, as opposed to the API. */
function isPage({ method, path }: Context): boolean {
  const isOfConsole = path === '/' || path === '/console' || path.startsWith('/console/');
  return isOfConsole && (method === 'GET' || method === 'HEAD');
}

async function readBuilt(path: string): Promise<BuiltFile> {
  const [plain, brotli] = await Promise.all([
    readFile(join(BUILT, path)),
    readFile(join(BUILT, `${path}.br`)).catch(() => undefined),
  ]);
  return { plain, brotli };
}

function send(ctx: Context, file: BuiltFile, extension: string, caching: string): void {
  const isBrotli = file.brotli !== undefined && /\bbr\b/.test(ctx.get('Accept-Encoding'));
  const body = isBrotli && file.brotli ? file.brotli : file.plain;
  ctx.respond = false;
  ctx.res.writeHead(200, {
    'Content-Type': TYPES[extension] ?? 'application/octet-stream',
    'Content-Length': body.length,
    'Cache-Control': caching,
    'Content-Security-Policy': CSP,
    // Not `no-referrer`, which makes browsers send `Origin: null` with our own requests.
    'Referrer-Policy': 'same-origin',
    'Cross-Origin-Opener-Policy': 'same-origin',
    Vary: 'Accept-Encoding',
    ...headersOfEvery(requestIdOf(ctx)),
    ...(isBrotli ? { 'Content-Encoding': 'br' } : {}),
  });
  ctx.res.end(ctx.method === 'HEAD' ? undefined : body);
}

async function handleAuth(api: Api, ctx: Context, body: string | undefined): Promise<void> {
  ctx.respond = false;
  ctx.set({
    ...headersOfEvery(requestIdOf(ctx)),
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
  });
  try {
    await api.console.handle(ctx.req, ctx.res, body);
  } catch (error) {
    throw ctx.method === 'POST' ? writeErrorOf(error) : error;
  }
}

/** Before anybody is known. The library would read a body of any length, and write any text to the database. */
async function readAuthBody({ req }: Context): Promise<string> {
  const body = await readJson(req, AUTH_BYTES_MAX);
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new ApiError('invalid_request', 'The body must be a JSON object.');
  }
  for (const [param, value] of Object.entries(body)) {
    if (!isNestedDeeperThan(DEPTH_MAX, value) && isStorable(value)) continue;
    const problem =
      'must be text without NUL and without unpaired surrogates, and not nested deeply.';
    throw invalidField(param, `${param} ${problem}`);
  }
  return JSON.stringify(body);
}

/** Twice what a passkey's proof has. */
const DEPTH_MAX = 8;

function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return isStorableText(value);
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).flat().every(isStorable);
}
