/** Public descriptions of the API for programs: `/openapi.json` and `/llms.txt`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Middleware } from 'koa';
import type { Endpoint } from '../endpoint.ts';
import { openApiDocument } from '../openapi/document.ts';
import { llmsText } from '../openapi/llms.ts';
import { respond } from '../respond.ts';

const PACKAGE = join(import.meta.dirname, '../../../package.json');

/** The documents change only with a release. */
const CACHE_CONTROL = 'public, max-age=300';

export function getOpenApi(endpoints: readonly Endpoint[]): Middleware {
  const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string };
  const body = JSON.stringify(openApiDocument(endpoints, version));
  return serve('application/json', body);
}

export function getLlms(endpoints: readonly Endpoint[]): Middleware {
  return serve('text/markdown', llmsText(endpoints));
}

function serve(type: string, body: string): Middleware {
  const headers = { 'Cache-Control': CACHE_CONTROL, 'Access-Control-Allow-Origin': '*' };
  return async (ctx) => respond(ctx, 200, `${type}; charset=utf-8`, body, headers);
}
