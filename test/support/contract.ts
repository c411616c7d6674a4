/** Checks replies against the table of routes, from which the OpenAPI document is generated. */
import assert from 'node:assert/strict';
import { Ajv, type ValidateFunction } from 'ajv';
import type { TSchema } from 'typebox';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { errorCodesOf } from '../../src/http/openapi/errors.ts';
import { ENDPOINTS } from '../../src/http/routes.ts';
import { ErrorReply } from '../../src/schemas/errors.ts';
import { LEVELS_MAX, MUST_BE } from '../../src/schemas/shapes.ts';
import { keysIn } from './leaks.ts';

interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

const ajv = new Ajv({
  strictTypes: false,
  formats: {
    'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
    date: /^\d{4}-\d\d-\d\d$/,
  },
});
// Only bodies have it, which are checked where they arrive.
ajv.addKeyword(LEVELS_MAX);
ajv.addKeyword(MUST_BE);
const validators = new Map<TSchema, ValidateFunction>();

/** Fails for an extra member as for a missing one: the schemas of replies are closed. */
export function assertShape(body: unknown, schema: TSchema): void {
  const validate = validators.get(schema) ?? ajv.compile(schema);
  validators.set(schema, validate);
  assert.ok(validate(body), `${ajv.errorsText(validate.errors)} in ${JSON.stringify(body)}`);
}

/** Ignores calls of paths outside the table. */
export function assertInContract(method: string, path: string, received: Received): void {
  const endpoint = endpointOf(method, path);
  if (!endpoint) return;
  const { status, headers, body } = received;
  const where = `${method} ${path} answered ${status}: ${JSON.stringify(body)}`;
  if (status >= 400) {
    assertShape(body, ErrorReply);
    assert.deepEqual(keysIn(JSON.stringify(body)), [], 'an error contains a key');
    const { code } = (body as ErrorReply).error;
    assert.ok(errorCodesOf(endpoint).has(code), `not documented: ${where}`);
  } else if (endpoint.replies === 'csv') {
    assert.match(headers.get('content-type') ?? '', /^text\/csv/, where);
  } else if (endpoint.replies === 'events') {
    assert.equal(headers.get('content-type'), 'text/event-stream', where);
  } else {
    const schema = endpoint.replies[status];
    assert.ok(schema, `not documented: ${where}`);
    assertShape(body, schema);
  }
}

const PATTERNS = ENDPOINTS.map((endpoint) => [patternOf(endpoint), endpoint] as const);

/** The row that serves a path: an exact match, else the first that fits, like in the app. */
function endpointOf(method: string, path: string): Endpoint | undefined {
  const { pathname } = new URL(path, 'http://localhost');
  const exact = ENDPOINTS.filter((endpoint) => endpoint.path === pathname);
  const candidates =
    exact.length > 0
      ? exact
      : PATTERNS.filter(([pattern]) => pattern.test(pathname)).map(([, endpoint]) => endpoint);
  return candidates.find((endpoint) => endpoint.method === method.toLowerCase());
}

function patternOf({ path }: Endpoint): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/:[a-z]+/g, '[^/]+')}$`);
}
