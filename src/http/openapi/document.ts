/** The OpenAPI 3.1 document: derived from the table of routes alone. */
import type { TSchema } from 'typebox';
import type { Endpoint } from '../endpoint.ts';
import { KEY_FORM } from '../../domain/idempotency-key.ts';
import { componentOf, components } from './components.ts';
import { errorExamples, errorResponses } from './errors.ts';
import { exampleOf } from './examples.ts';
import { TAGS } from './operation.ts';
import { OPERATIONS } from './operations.ts';
import { SECURITY, SECURITY_SCHEMES } from './security.ts';
import { webhooks } from './webhooks.ts';

type Json = Readonly<Record<string, unknown>>;

const REQUEST_ID = { 'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' } };
const HEADERS = {
  'X-Request-Id': {
    description: 'The id of this request. Quote it when you ask for help.',
    schema: { type: 'string', examples: ['req_01a1fd6455e57aa3b31e95f51a48130e'] },
  },
  'Idempotency-Replayed': {
    description: '`true` when an earlier request with the same Idempotency-Key did the work.',
    schema: { type: 'string', const: 'true' },
  },
  'Retry-After': {
    description: 'How many seconds to wait before you try again.',
    schema: { type: 'integer', minimum: 1, examples: [1] },
  },
  'WWW-Authenticate': {
    description: 'The scheme of authentication.',
    schema: { type: 'string', const: 'Bearer' },
  },
};

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: `Makes retries safe: requests with the same key take effect once. The key is ${KEY_FORM}.`,
  schema: {
    type: 'string',
    pattern: '^[\\x21-\\x7e]([\\x20-\\x7e]{0,253}[\\x21-\\x7e])?$',
    examples: ['8b1c9f0e-6d0e-4c43-9b43-0f5f1f7e2a11'],
  },
};

export function openApiDocument(endpoints: readonly Endpoint[], version: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const endpoint of endpoints) {
    const path = endpoint.path.replaceAll(/:([a-z]+)/g, '{$1}');
    (paths[path] ??= {})[endpoint.method] = operationOf(endpoint);
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Farebox API',
      version,
      summary: 'Prepaid-balance billing for tool servers.',
      description:
        'Amounts are JSON numbers in dollars. Times are ISO 8601 in UTC. A 2xx status is durable. ' +
        'With 4xx and 503, no money moved. With `idempotency_key_in_use` (409), 500 or a lost connection, the ' +
        'outcome is unknown: repeat the request with the same `Idempotency-Key` to find out. Ignore fields ' +
        'that you do not know: later versions may add some. [API stability](/docs/stability.md) says what can change.',
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The server that serves this document.' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: webhooks(),
    components: {
      schemas: components(),
      headers: HEADERS,
      examples: errorExamples(endpoints),
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

function operationOf(endpoint: Endpoint): Json {
  const { operation, role, body } = endpoint;
  const { tag, summary, description } = OPERATIONS[operation];
  const required = new Set<string>(endpoint.query?.required);
  const parameters = [
    ...Object.entries(endpoint.params ?? {}).map(([name, schema]) =>
      parameter(name, 'path', schema, true),
    ),
    ...Object.entries((endpoint.query?.properties ?? {}) as Record<string, TSchema>).map(
      ([name, schema]) => parameter(name, 'query', schema, required.has(name)),
    ),
    ...(endpoint.isIdempotent ? [IDEMPOTENCY_KEY] : []),
  ];
  return {
    operationId: operation,
    tags: [tag],
    summary,
    description,
    security: SECURITY[role],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: !endpoint.isBodyOptional, content: content(body) } }),
    responses: { ...successes(endpoint), ...errorResponses(endpoint) },
  };
}

function parameter(
  name: string,
  place: 'path' | 'query',
  schema: TSchema,
  required: boolean,
): Json {
  const { description, ...rest } = schema as { description?: string };
  return { name, in: place, required, description, schema: rest };
}

const MEANINGS: Readonly<Record<number, string>> = {
  200: 'Success.',
  201: 'Created, and durable.',
  202: 'Accepted. The work continues after this response.',
};

function successes({ replies, event, isIdempotent }: Endpoint): Json {
  if (replies === 'csv') {
    const schema = { type: 'string' };
    const description = 'The file, in UTF-8, with a header row.';
    return {
      200: { description, headers: REQUEST_ID, content: { 'text/csv': { schema } } },
    };
  }
  if (replies === 'events' && event) {
    return {
      200: {
        description: 'Server-sent events, until either side ends them.',
        headers: REQUEST_ID,
        content: { 'text/event-stream': eventsOf(event) },
      },
    };
  }
  const replayed = {
    'Idempotency-Replayed': { $ref: '#/components/headers/Idempotency-Replayed' },
  };
  const headers = isIdempotent ? { ...REQUEST_ID, ...replayed } : REQUEST_ID;
  return Object.fromEntries(
    Object.entries(replies).map(([status, schema]) => [
      status,
      { description: MEANINGS[Number(status)], headers, content: content(schema) },
    ]),
  );
}

/** As OpenAPI 3.2 describes a stream: an array of its events. */
function eventsOf({ name, data }: NonNullable<Endpoint['event']>): Json {
  const item = {
    type: 'object',
    required: ['event', 'data'],
    properties: {
      event: { type: 'string', const: name },
      data: {
        type: 'string',
        contentMediaType: 'application/json',
        contentSchema: componentOf(data),
      },
    },
  };
  const example = [{ event: name, data: JSON.stringify(exampleOf(data)) }];
  return { schema: { type: 'array', items: item }, example };
}

function content(schema: TSchema): Json {
  return { 'application/json': { schema: componentOf(schema), example: exampleOf(schema) } };
}
