/** Each keyword that the schemas of bodies use has a message that says what to send. */
import assert from 'node:assert/strict';
import type { TSchema } from 'typebox';
import { ApiError } from '../../src/domain/errors.ts';
import { exampleOf } from '../../src/http/openapi/examples.ts';
import { ENDPOINTS } from '../../src/http/routes.ts';
import { bodyValidator } from '../../src/http/validation.ts';
import { BATCH_OPS } from '../../src/schemas/charge-batches.ts';
import { MUST_BE } from '../../src/schemas/shapes.ts';

type Json = Readonly<Record<string, unknown>>;

/** Keywords that describe, contain other schemas, or accept everything. */
const NOT_CHECKED = new Set([
  'description',
  'examples',
  'default',
  'format',
  MUST_BE,
  'properties',
  'patternProperties',
  'items',
]);

const bodies: ReadonlyMap<string, TSchema> = new Map(
  ENDPOINTS.flatMap(({ method, path, body }) =>
    body ? [[`${method} ${path}`, body] as const] : [],
  ),
);

/** The handler checks each member of a batch by its own operation. */
const operations: readonly (readonly [op: string, body: TSchema])[] = Object.entries(BATCH_OPS);

/** The schema and all schemas in it. */
function schemasIn(schema: Json): readonly Json[] {
  const { properties, patternProperties, items, anyOf } = schema;
  const inner = [properties, patternProperties, anyOf].flatMap((each) => Object.values(each ?? {}));
  return [
    schema,
    ...[...inner, ...(items ? [items] : [])].flatMap((each) => schemasIn(each as Json)),
  ];
}

const schemas = [...bodies.values()].flatMap((body) => schemasIn(body as Json));

function refusalOf(schema: TSchema, body: unknown): ApiError | undefined {
  try {
    bodyValidator(schema)(body);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  return undefined;
}

function messageOf(route: string, body: unknown): string {
  const schema = bodies.get(route);
  assert.ok(schema, `no such route: ${route}`);
  return refusalOf(schema, body)?.message ?? 'accepted';
}

/** For each field of dollars in the schema: its path, and a value of the schema that has `true` in this field. */
function wrongDollarsIn(schema: Json): readonly (readonly [path: string, value: unknown])[] {
  const { properties = {}, required = [], items, anyOf = [] } = schema;
  const types = (anyOf as readonly Json[]).map(({ type }) => type);
  // Values of metadata may be numbers and strings too, but also true.
  const isDollars = ['number', 'string'].every((type) => types.includes(type));
  if (isDollars) return types.includes('boolean') ? [] : [['', true]];
  const members = Object.entries(properties as Readonly<Record<string, Json>>);
  const needed = members.filter(([name]) => (required as readonly string[]).includes(name));
  const examples = needed.map(([name, member]) => [name, exampleOf(member)]);
  return [
    ...members.flatMap(([name, member]) =>
      wrongDollarsIn(member).map(
        ([path, value]) =>
          [`.${name}${path}`, { ...Object.fromEntries(examples), [name]: value }] as const,
      ),
    ),
    ...(items ? wrongDollarsIn(items as Json) : []).map(
      ([path, value]) => [`.0${path}`, [value]] as const,
    ),
    ...(anyOf as readonly Json[]).flatMap(wrongDollarsIn),
  ];
}

const CHARGE = 'post /v1/charges';
const BATCH = 'post /v1/charges/batch';
const BUDGET = 'post /v1/budgets';
const LEASE = 'post /v1/leases';
const WEBHOOK = 'post /v1/webhook-endpoints';
const AGENT = 'post /register';
const METADATA_VALUE = 'a string, a number, true or false, or null';
const MONEY = 'It must be dollars, as a number or as a decimal string such as "0.02".';

const charged = (metadata: unknown) => ({ tool: 'search', metadata });
const many = (length: number) => Array.from({ length }, (_, place) => `name ${place}`);
const nested = (levels: number): Json => (levels === 1 ? {} : { a: nested(levels - 1) });

const refused: readonly (readonly [
  keyword: string,
  route: string,
  body: unknown,
  message: string,
])[] = [
  ['type', CHARGE, 5, 'The body must be a JSON object.'],
  ['type', CHARGE, { tool: 5 }, 'tool must be a string.'],
  ['type', CHARGE, charged([]), 'metadata must be an object.'],
  ['type', BATCH, { charges: {} }, 'charges must be an array.'],
  ['type', BUDGET, { name: 'a', allowLeases: 1 }, 'allowLeases must be true or false.'],
  ['type', LEASE, { tools: ['a'], amount: 1, expiresIn: 1.5 }, 'expiresIn must be an integer.'],
  ['required', CHARGE, {}, 'tool is missing.'],
  ['required', BUDGET, { name: 'a', window: { limit: 1 } }, 'window.per is missing.'],
  ['additionalProperties', BUDGET, { name: 'a', nam: 'a' }, 'nam is not a field of this body.'],
  [
    'additionalProperties',
    BUDGET,
    { ['n'.repeat(41)]: 'a', name: 'a' },
    'The body has an unknown field.',
  ],
  [
    'additionalProperties',
    BUDGET,
    { name: 'a', window: { per: 'day', limit: 1, max: 2 } },
    'window has an unknown field.',
  ],
  [
    'additionalProperties',
    CHARGE,
    charged({ ['n'.repeat(41)]: 1 }),
    'metadata must be an object whose names have 1 to 40 characters, without NUL or unpaired surrogates.',
  ],
  ['minProperties', CHARGE, { tool: 'llm', units: {} }, 'units must have at least 1 field.'],
  [
    'maxProperties',
    CHARGE,
    charged(Object.fromEntries(many(21).map((name) => [name, 1]))),
    'metadata must have at most 20 fields.',
  ],
  [
    'pattern',
    CHARGE,
    { tool: ' ' },
    'tool must be printable text of 1 to 100 characters, not all blank.',
  ],
  [
    'pattern',
    CHARGE,
    charged({ a: '\0' }),
    'metadata.a must be text of at most 500 characters, without NUL or unpaired surrogates.',
  ],
  [
    'pattern',
    BUDGET,
    { name: 'a', parentId: 'dev_1' },
    'parentId must be an id such as bdg_01a1fd6455e57aa3b31e95f51a48130e.',
  ],
  [
    'pattern',
    AGENT,
    { id: '-', name: 'a', protocol: 'http', endpoint: 'https://a.example' },
    'id must be 1 to 100 letters, digits and . _ : -, beginning with a letter or a digit.',
  ],
  [
    'pattern',
    AGENT,
    { id: 'a', name: 'a', protocol: 'http/1.1', endpoint: 'https://a.example' },
    'protocol must be 1 to 30 letters, digits and -.',
  ],
  [
    'pattern',
    AGENT,
    { id: 'a', name: 'a', protocol: 'http', endpoint: 'https://a b' },
    'endpoint must be a URL of 1 to 2000 characters, without spaces or control characters.',
  ],
  ['anyOf', CHARGE, { tool: 'a', amount: true }, `amount is true. ${MONEY}`],
  ['anyOf', CHARGE, charged({ a: [] }), `metadata.a must be ${METADATA_VALUE}.`],
  ['anyOf', BUDGET, { name: 'a', limit: [] }, `limit is an array. ${MONEY}`],
  ['anyOf', BUDGET, { name: 'a', window: 5 }, 'window must be an object or null.'],
  [
    'anyOf',
    BUDGET,
    { name: 'a', window: { per: 'day', limit: null } },
    `window.limit is null. ${MONEY}`,
  ],
  ['anyOf', BUDGET, { name: 'a', tools: 'search' }, 'tools must be an array or null.'],
  ['anyOf', BUDGET, { name: 'a', tools: [5] }, 'tools.0 must be a string.'],
  ['anyOf', BUDGET, { name: 'a', expiresAt: 5 }, 'expiresAt must be a string or null.'],
  ['anyOf', BUDGET, { name: 'a', metadata: 5 }, 'metadata must be an object or null.'],
  ['anyOf', BUDGET, { name: 'a', metadata: { a: {} } }, `metadata.a must be ${METADATA_VALUE}.`],
  ['anyOf', LEASE, { tools: [5], amount: 1 }, 'tools.0 must be a string or an object.'],
  ['anyOf', LEASE, { tools: [{}], amount: 1 }, 'tools.0.name is missing.'],
  [
    'anyOf',
    LEASE,
    { tools: [{ name: 'a', price: null }], amount: 1 },
    `tools.0.price is null. ${MONEY}`,
  ],
  ['anyOf', WEBHOOK, { url: 'https://a.example', types: {} }, 'types must be an array or null.'],
  ['anyOf', 'post /v1/tools', { name: 'a', price: {} }, `price is an object. ${MONEY}`],
  ['anyOf', 'patch /v1/developer', { returnUrl: 5 }, 'returnUrl must be a string or null.'],
  [
    'enum',
    BUDGET,
    { name: 'a', window: { per: 'year', limit: 1 } },
    'window.per must be one of: hour, day, week, month.',
  ],
  ['minimum', LEASE, { tools: ['a'], amount: 1, expiresIn: 0 }, 'expiresIn must be at least 1.'],
  [
    'maximum',
    LEASE,
    { tools: ['a'], amount: 1, expiresIn: 86_401 },
    'expiresIn must be at most 86400.',
  ],
  ['minLength', CHARGE, { tool: '' }, 'tool must have at least 1 character.'],
  ['maxLength', CHARGE, { tool: 'a'.repeat(101) }, 'tool must have at most 100 characters.'],
  ['minItems', BATCH, { charges: [] }, 'charges must have at least 1 item.'],
  ['maxItems', BUDGET, { name: 'a', tools: many(101) }, 'tools must have at most 100 items.'],
  [
    'uniqueItems',
    BUDGET,
    { name: 'a', tools: ['a', 'a'] },
    'tools must not contain the same item twice.',
  ],
  [
    'x-levelsMax',
    'post /invoke',
    { targetAgentId: 'a', grantId: 'a', capability: 'a', payload: nested(200) },
    'payload may be nested at most 100 levels deep.',
  ],
];

const OPEN = [
  'post /grant',
  'post /intent/preview',
  'post /invoke',
  'post /register',
  'post /resolve',
  'post /v1/charges',
  'post /v1/checkout',
  'post /v1/leases/:id/settle',
  'post /v1/tools',
  'post /v1/top-up',
];

describe('bodies', () => {
  it('refuse unknown members, but for those of the specification and of settlements', () => {
    const open = [...bodies, ...operations].flatMap(([name, schema]) =>
      schemasIn(schema as Json).some(
        ({ type, properties, additionalProperties }) =>
          type === 'object' && properties !== undefined && additionalProperties !== false,
      )
        ? [name]
        : [],
    );
    assert.deepEqual(open.toSorted(), OPEN);
  });

  for (const [route, body] of [
    ['post /v1/charges/:id/refund', { amout: 0.1 }],
    ['post /v1/holds/:id/capture', { amuont: 0.1 }],
    ['post /v1/keys', { kind: 'consumer', mod: 'test' }],
    ['post /v1/keys/:id/roll', { overlap: 86_400 }],
  ] as const) {
    it(`names the unknown member: ${route}`, () => {
      const member = Object.keys(body).at(-1);
      assert.equal(messageOf(route, body), `${member} is not a field of this body.`);
    });
  }
});

describe('the message for a body that is refused', () => {
  for (const [keyword, route, body, message] of refused) {
    it(`says for ${keyword}: ${message}`, () => {
      assert.equal(messageOf(route, body), message);
    });
  }

  it('is tested for each keyword that a body uses', () => {
    const used = new Set(schemas.flatMap((schema) => Object.keys(schema)));
    // The handler checks each member of a batch by its own operation, which is a constant.
    const tested = new Set([...refused.map(([keyword]) => keyword), ...NOT_CHECKED, 'const']);
    assert.deepEqual(
      [...used].filter((keyword) => !tested.has(keyword)),
      [],
    );
  });

  it('has the code invalid_amount for each field of dollars that is true', () => {
    const checked = [...[...bodies].filter(([route]) => route !== BATCH), ...operations];
    const refusals = checked.flatMap(([route, schema]) =>
      wrongDollarsIn(schema as Json).map(([path, body]) => {
        const { code, details } = refusalOf(schema, body) ?? {};
        return `${route}: ${code} for ${details?.param}, wrong is ${path.slice(1)}`;
      }),
    );
    assert.notDeepEqual(refusals, []);
    assert.deepEqual(
      refusals.filter((line) => !/: invalid_amount for (.+), wrong is \1$/.test(line)),
      [],
    );
  });

  it('has words for each pattern', () => {
    const wordless = schemas.filter((schema) => 'pattern' in schema && !(MUST_BE in schema));
    assert.deepEqual(wordless, []);
  });
});
