/** Public descriptions of the API for programs: `/openapi.json` and `/llms.txt`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Middleware } from 'koa';
import { ROOT } from '../../root.ts';
import type { Endpoint } from '../endpoint.ts';
import { openApiDocument } from '../openapi/document.ts';
import { llmsText } from '../openapi/llms.ts';
import { respond } from '../respond.ts';

const PACKAGE = join(ROOT, 'package.json');

/** The documents change only with a release. */
const CACHE_CONTROL = 'public, max-age=300';

export function getOpenApi(endpoints: readonly Endpoint[]): Middleware {
  return serve('application/json', () => {
    const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string };
    return JSON.stringify(openApiDocument(endpoints, version));
  });
}

export function getLlms(endpoints: readonly Endpoint[]): Middleware {
  return serve('text/markdown', () => llmsText(endpoints));
}

/**
 * Written when it is first requested: few processes are asked for it, and the OpenAPI document takes longer
 * than the rest of `createApp`.
 */
function serve(type: string, write: () => string): Middleware {
  const headers = { 'Cache-Control': CACHE_CONTROL, 'Access-Control-Allow-Origin': '*' };
  let body: string | undefined;
  return async (ctx) => respond(ctx, 200, `${type}; charset=utf-8`, (body ??= write()), headers);
}
