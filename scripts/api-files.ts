/**
 * The files that are made from the table of routes and the types of events: the OpenAPI document, the
 * client's types, a page.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compile } from 'json-schema-to-typescript';
import { openApiDocument } from '../src/http/openapi/document.ts';
import { eventsPage } from '../src/http/openapi/event-examples.ts';
import { EVENT_MEANINGS } from '../src/http/openapi/webhooks.ts';
import { ENDPOINTS } from '../src/http/routes.ts';
import { ROOT } from '../src/root.ts';

const BANNER = `/**
 * The bodies and the replies of the HTTP API. Generated from its OpenAPI document by
 * \`npm run generate\`; do not edit.
 */`;

/** Path from the root to content. */
export async function apiFiles(): Promise<Readonly<Record<string, string>>> {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    version: string;
  };
  const document = openApiDocument(ENDPOINTS, version);
  return {
    'docs/openapi.json': `${JSON.stringify(document, null, 2)}\n`,
    'docs/events.md': eventsPage(EVENT_MEANINGS),
    'client/api.d.ts': await typesOf(document),
  };
}

async function typesOf(document: object): Promise<string> {
  const text = JSON.stringify(document).replaceAll('#/components/schemas/', '#/definitions/');
  const { components } = JSON.parse(text) as { components: { schemas: Record<string, object> } };
  const types = await compile({ definitions: components.schemas }, 'Api', {
    bannerComment: BANNER,
    unreachableDefinitions: true,
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    style: { printWidth: 100, singleQuote: true },
  });
  // The root of the schema has no type of its own: only its definitions count.
  return types
    .replace(/export interface Api \{[^}]*\}\n/, '')
    .replaceAll(/\/\*\*\n \* This interface was referenced by .*\n \* via .*\n \*\/\n/g, '')
    .replaceAll(/ \*\n \* This interface was referenced by .*\n \* via .*\n/g, '')
    .replaceAll(/\/\*\*\n +\* (.{0,90})\n +\*\//g, '/** $1 */');
}
