/**
 * The API reference at `/docs`: Swagger UI over `/openapi.json`, served from its npm package. The page loads nothing
 * from other hosts, which its Content-Security-Policy guarantees.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';
import type { Context, Middleware } from 'koa';
import { remembered } from '../../remembered.ts';
import { respond, respondBytes } from '../respond.ts';

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Farebox API</title>
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

/** No validator badge: it would send the document's address to another host. Keys typed here are not stored. */
const START = `
SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  validatorUrl: null,
});
`;

/** Swagger UI sets styles on elements and draws its icons from data. */
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";
const HEADERS = { 'Content-Security-Policy': CSP, 'Cache-Control': 'public, max-age=3600' };

const ASSETS = {
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
} as const;

type Asset = keyof typeof ASSETS;

interface Route {
  readonly method: 'get';
  readonly path: string;
  readonly middleware: Middleware;
}

export function apiReferencePages(): readonly Route[] {
  return [
    get('/docs', async (ctx) => respond(ctx, 200, 'text/html; charset=utf-8', PAGE, HEADERS)),
    get('/docs/start.js', async (ctx) =>
      respond(ctx, 200, 'text/javascript; charset=utf-8', START, HEADERS),
    ),
    ...(Object.keys(ASSETS) as Asset[]).map((name) => get(`/docs/${name}`, serve(name))),
  ];
}

function get(path: string, middleware: Middleware): Route {
  return { method: 'get', path, middleware };
}

/** Read and compressed at the first request, then kept in memory: half a megabyte for both files. */
function serve(name: Asset): Middleware {
  const compressed = remembered(() => compressAsset(name));
  return async (ctx: Context) => {
    if (!ctx.acceptsEncodings('br')) {
      return respondBytes(ctx, ASSETS[name], await readAsset(name), HEADERS);
    }
    const headers = { ...HEADERS, 'Content-Encoding': 'br', Vary: 'Accept-Encoding' };
    return respondBytes(ctx, ASSETS[name], await compressed(), headers);
  };
}

function readAsset(name: Asset): Promise<Buffer> {
  return readFile(createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`));
}

/**
 * Quality 5 takes a twentieth of a second and gives a result a tenth larger than the best quality, which takes seconds.
 */
async function compressAsset(name: Asset): Promise<Buffer> {
  return promisify(brotliCompress)(await readAsset(name), {
    params: { [constants.BROTLI_PARAM_QUALITY]: 5 },
  });
}
