/** The API described for programs: `GET /openapi.json`, for everybody. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Middleware } from 'koa';
import type { Endpoint } from '../endpoint.ts';
import { openApiDocument } from '../openapi/document.ts';
import { respond } from '../respond.ts';

const PACKAGE = join(import.meta.dirname, '../../../package.json');

/** The same until the next release, so caches may keep it, and then ask whether it has changed. */
const CACHE_CONTROL = 'public, max-age=300';

export function getOpenApi(endpoints: readonly Endpoint[]): Middleware {
  const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string };
  const body = JSON.stringify(openApiDocument(endpoints, version));
  const headers = {
    'Cache-Control': CACHE_CONTROL,
    ETag: `"${hash('sha256', body, 'base64url')}"`,
    'Access-Control-Allow-Origin': '*',
  };
  return async (ctx) => {
    const isKnown = ctx.get('If-None-Match') === headers.ETag;
    respond(
      ctx,
      isKnown ? 304 : 200,
      'application/json; charset=utf-8',
      isKnown ? '' : body,
      headers,
    );
  };
}
