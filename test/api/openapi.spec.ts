/** The OpenAPI document matches the table of routes, is complete, and has valid examples. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import type { TSchema } from 'typebox';
import { apiFiles } from '../../scripts/api-files.ts';
import { exampleOf } from '../../src/http/openapi/examples.ts';
import { OPERATIONS } from '../../src/http/openapi/operations.ts';
import { ERRORS } from '../../src/domain/errors.ts';
import { ENDPOINTS } from '../../src/http/routes.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { call } from '../support/http.ts';
import { assertShape } from '../support/contract.ts';
import { read, ROOT } from '../tree/sources.ts';

interface Described {
  readonly paths: Readonly<Record<string, { readonly get?: { readonly parameters?: Parameters } }>>;
}
type Parameters = readonly {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
}[];

/** The operations that each file of the folder names. */
function operationsIn(folder: string, pattern: RegExp): (readonly [string, string[]])[] {
  const files = globSync('*.ts', { cwd: join(ROOT, folder) }).toSorted();
  return files.map((file) => {
    const found = read(`${folder}/${file}`).matchAll(pattern);
    return [file, Array.from(found, ([, operation = '']) => operation).toSorted()];
  });
}

describe('the OpenAPI document', () => {
  it('matches, like the client’s types, the output of `npm run generate`', async () => {
    for (const [path, content] of Object.entries(await apiFiles())) {
      assert.ok(read(path) === content, `${path} is out of date: npm run generate`);
    }
  });

  it('describes each operation in a text of its own', () => {
    const named = ENDPOINTS.map(({ operation }) => operation);
    assert.deepEqual(named.toSorted(), Object.keys(OPERATIONS).toSorted());
  });

  it('has the texts of operations in files by noun, as the routes are', () => {
    assert.deepEqual(
      operationsIn('src/http/openapi/operations', /^ {2}(\w+): \{$/gm),
      operationsIn('src/http/routes', /^ {4}operation: '(\w+)',$/gm),
    );
  });

  it('has a schema for each path parameter', () => {
    for (const { path, params = {} } of ENDPOINTS) {
      const names = [...path.matchAll(/:([a-z]+)/g)].map(([, name]) => name);
      assert.deepEqual(Object.keys(params), names, path);
    }
  });

  it('says which query parameters are required', () => {
    const { paths } = JSON.parse(read('docs/openapi.json')) as Described;
    const required = Object.entries(paths).flatMap(([path, { get }]) =>
      (get?.parameters ?? [])
        .filter((each) => each.in === 'query' && each.required)
        .map(({ name }) => `${path}?${name}`),
    );
    assert.deepEqual(required.toSorted(), [
      '/v1/operator/accounts?query',
      '/v1/top-up/quote?amount',
      '/v1/usage/daily?from',
    ]);
  });

  it('closes every reply object that has named members', () => {
    for (const { path, replies, event } of ENDPOINTS) {
      const schemas = typeof replies === 'string' ? { event: event?.data ?? {} } : replies;
      for (const schema of Object.values(schemas)) assert.deepEqual(openParts(schema), [], path);
    }
  });

  it('has a valid example for each body and each reply', () => {
    for (const { body, replies, event } of ENDPOINTS) {
      const ofEvent = event ? [event.data] : [];
      const schemas = typeof replies === 'string' ? ofEvent : Object.values(replies);
      for (const schema of body ? [body, ...schemas] : schemas) {
        assertShape(exampleOf(schema), schema);
      }
    }
  });
});

describe('GET /openapi.json', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());

  it('is public and may be cached', async () => {
    const { status, headers, body } = await call(api, 'GET', '/openapi.json');
    assert.equal(status, 200);
    assert.equal(headers.get('cache-control'), 'public, max-age=300');
    assert.deepEqual(body, JSON.parse(read('docs/openapi.json')));
  });

  it('takes an amount as a decimal string wherever it takes one as a number', () => {
    const amounts = ENDPOINTS.flatMap(({ path, body }) =>
      fractions(body, path).map(([where, types]) => `${where}: ${types.toSorted().join(', ')}`),
    );
    assert.deepEqual([...new Set(amounts)].toSorted(), [
      '/v1/account-keys.developerDayLimit: null, number, string',
      '/v1/approvals.amount: number, string',
      '/v1/approvals/:id/decide.amount: number, string',
      '/v1/approvals/:id/decide.limit: number, string',
      '/v1/auto-top-up.amount: number, string',
      '/v1/auto-top-up.ceiling: number, string',
      '/v1/auto-top-up.threshold: number, string',
      '/v1/budgets.limit: null, number, string',
      '/v1/budgets.maxLease: null, number, string',
      '/v1/budgets.maxPerCall: null, number, string',
      '/v1/budgets.window.limit: number, string',
      '/v1/budgets/:id.limit: null, number, string',
      '/v1/budgets/:id.maxLease: null, number, string',
      '/v1/budgets/:id.maxPerCall: null, number, string',
      '/v1/budgets/:id.window.limit: number, string',
      '/v1/charges.amount: number, string',
      '/v1/charges/:id/refund.amount: number, string',
      '/v1/charges/batch.charges[].amount: number, string',
      '/v1/checkout.amount: number, string',
      '/v1/consent.ceiling: number, string',
      '/v1/holds.amount: number, string',
      '/v1/holds/:id/capture.amount: number, string',
      '/v1/leases.amount: number, string',
      '/v1/leases.tools[].price: number, string',
      '/v1/leases/:id/settle.entries[].amount: number, string',
      '/v1/low-balance.threshold: null, number, string',
      '/v1/operator/accounts/:id/adjustments.amount: number, string',
      '/v1/operator/top-ups/:id/refund.amount: number, string',
      '/v1/tools.price: null, number, string',
      '/v1/tools/:id.price: null, number, string',
      '/v1/top-up.amount: number, string',
    ]);
  });

  it('lists every path that the server has for programs', async () => {
    const paths = Object.keys((JSON.parse(read('docs/openapi.json')) as { paths: object }).paths);
    for (const path of paths) {
      const { headers, status } = await call(api, 'PUT', path);
      assert.equal(status, 405, path);
      assert.match(headers.get('allow') ?? '', /GET|POST|PATCH/, path);
    }
  });
});

describe('the documentation as Markdown', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api?.stop());

  it('is indexed in /llms.txt, which lists every endpoint', async () => {
    const { status, body } = await call(api, 'GET', '/llms.txt');
    assert.equal(status, 200);
    for (const { method, path } of ENDPOINTS) {
      assert.ok(String(body).includes(`\`${method.toUpperCase()} ${path}\``), path);
    }
  });

  it('has each file that the index and its pages link to, as it is in the repository', async () => {
    const seen = new Set(['/llms.txt']);
    for (const path of seen) {
      const { status, headers, body } = await call(api, 'GET', path);
      assert.equal(status, 200, path);
      if (!/\.(md|txt)$/.test(path)) continue;
      assert.equal(headers.get('content-type'), 'text/markdown; charset=utf-8', path);
      if (!path.startsWith('/docs/errors') && path !== '/llms.txt') {
        assertAsWritten(String(body), read(path.slice(1)));
      }
      for (const link of linksOf(String(body), path)) seen.add(link);
    }
    const errors = Object.keys(ERRORS).map((code) => `/docs/errors/${code}.md`);
    const others = ['/docs/quickstart.md', '/client/README.md', '/docs/images/stuck-list.png'];
    for (const path of [...others, '/examples/agent.ts', '/docs/openapi.json', ...errors]) {
      assert.ok(seen.has(path), path);
    }
    assert.match(
      String((await call(api, 'GET', '/docs/errors/hold_closed.md')).body),
      /^# `hold_closed`\n.*Status: 409.*Nothing happened.*`POST \/v1\/holds\/:id\/capture`/s,
    );
    const inImage = [...read('.dockerignore').matchAll(/^!(\S+)$/gm)].map(([, path = '']) => path);
    const generated = /^\/(llms\.txt|openapi\.json|docs\/openapi\.json|docs\/errors(\/.+)?\.md)$/;
    assert.deepEqual(
      [...seen].filter((path) => {
        const isCopied = inImage.some((pattern) => matchesGlob(path.slice(1), pattern));
        return !isCopied && !generated.test(path);
      }),
      [],
    );
  });

  it('names the path of a file that is in the repository only, instead of a link', async () => {
    const { body } = await call(api, 'GET', '/docs/operations.md');
    assert.match(String(body), /Import deploy\/grafana-dashboard\.json \(in the repository\) into/);
    const { body: readme } = await call(api, 'GET', '/README.md');
    assert.match(String(readme), / \(`docs\/screenshots\/[\w-]+\.png` in the repository\)/);
  });

  it('has no other files', async () => {
    const others = [
      '/docs/none.md',
      '/docs/errors/none.md',
      '/docs/..%2fSECURITY.md',
      '/docs/images/none.png',
      '/examples/..%2fpackage.json',
      '/package.json',
      '/CONTRIBUTING.md',
    ];
    for (const path of others) assert.equal((await call(api, 'GET', path)).status, 404, path);
  });
});

/** The paths in this server that a page of Markdown links to. */
function linksOf(text: string, page: string): string[] {
  return [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)]
    .map(([, link = '']) => new URL(link, `http://here${page}`))
    .filter(({ host }) => host === 'here')
    .map(({ pathname }) => pathname);
}

/** But for the lines in which a path stands for a link. */
function assertAsWritten(served: string, written: string): void {
  const lines = written.split('\n');
  for (const [index, line] of served.split('\n').entries()) {
    if (!line.includes('in the repository)')) assert.equal(line, lines[index]);
  }
}

interface Part {
  readonly type?: string;
  readonly anyOf?: readonly Part[];
  readonly properties?: Readonly<Record<string, Part>>;
  readonly items?: Part;
}

const typesOf = ({ type = '', anyOf }: Part): string[] => anyOf?.flatMap(typesOf) ?? [type];

/** The members of a body that may be fractions, each with the types that it may have. */
function fractions(part: Part | undefined, where: string): (readonly [string, string[]])[] {
  if (!part) return [];
  const types = typesOf(part);
  // Metadata may be of any type, and is no amount.
  if (types.includes('number') && !types.includes('boolean')) return [[where, types]];
  return [
    ...Object.entries(part.properties ?? {}).flatMap(([name, each]) =>
      fractions(each, `${where}.${name}`),
    ),
    ...fractions(part.items, `${where}[]`),
    ...(part.anyOf ?? []).flatMap((each) => fractions(each, where)),
  ];
}

/** Objects that have members and allow others. */
function openParts(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  const { type, properties, additionalProperties } = value as TSchema & Record<string, unknown>;
  const isOpen = type === 'object' && properties !== undefined && additionalProperties !== false;
  return [...(isOpen ? [value] : []), ...Object.values(value).flatMap(openParts)];
}
