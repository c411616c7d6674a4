/** The document's named schemas, under the names by which `src/schemas` exports them. */
import type { TSchema } from 'typebox';
import * as agents from '../../schemas/agents.ts';
import * as approvals from '../../schemas/approvals.ts';
import * as balance from '../../schemas/balance.ts';
import * as budgets from '../../schemas/budgets.ts';
import * as batches from '../../schemas/charge-batches.ts';
import * as charges from '../../schemas/charges.ts';
import * as developers from '../../schemas/developers.ts';
import * as earnings from '../../schemas/earnings.ts';
import * as errors from '../../schemas/errors.ts';
import * as grants from '../../schemas/grants.ts';
import * as holds from '../../schemas/holds.ts';
import * as invocations from '../../schemas/invocations.ts';
import * as keys from '../../schemas/keys.ts';
import * as leases from '../../schemas/leases.ts';
import * as receipts from '../../schemas/receipts.ts';
import * as refusals from '../../schemas/refusals.ts';
import * as statements from '../../schemas/statements.ts';
import * as tools from '../../schemas/tools.ts';
import * as topUps from '../../schemas/top-ups.ts';
import * as webhookEndpoints from '../../schemas/webhook-endpoints.ts';

const ROOMS = [
  agents,
  approvals,
  balance,
  batches,
  budgets,
  charges,
  developers,
  earnings,
  errors,
  grants,
  holds,
  invocations,
  keys,
  leases,
  receipts,
  refusals,
  statements,
  tools,
  topUps,
  webhookEndpoints,
];

/** Not among the components: queries, whose parameters are written out, and the reply of a page outside the table. */
const NOT_NAMED = /(Query|Envelope)$|^PublicKeysReply$/;

/**
 * Bodies, replies and their shared parts, found by content, because an optional member is a copy of its schema.
 * Parameters are written out where they are used.
 */
const NAMES: ReadonlyMap<string, string> = new Map(
  ROOMS.flatMap((room) =>
    Object.entries(room).flatMap(([name, value]): [string, string][] =>
      isBody(value) && !NOT_NAMED.test(name) ? [[JSON.stringify(value), name]] : [],
    ),
  ),
);

export function components(): Readonly<Record<string, unknown>> {
  const named = [...NAMES].map(([schema, name]) => [name, inlined(JSON.parse(schema))] as const);
  return Object.fromEntries(named.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** The schema with every named part replaced by a reference. */
export function componentOf(schema: TSchema): unknown {
  return referenced(schema);
}

function referenced(value: unknown): unknown {
  const name = NAMES.get(JSON.stringify(value));
  return name === undefined ? inlined(value) : { $ref: `#/components/schemas/${name}` };
}

function inlined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(referenced);
  if (typeof value !== 'object' || value === null) return value;
  const { patternProperties, ...rest } = value as Readonly<Record<string, unknown>>;
  const members = Object.entries(rest)
    .filter(([key, member]) => key !== 'pattern' || isPortable(String(member)))
    // Examples are data, not schemas.
    .map(([key, member]) => [key, key === 'examples' ? member : referenced(member)] as const);
  if (patternProperties === undefined) return Object.fromEntries(members);
  // A map with arbitrary names; the description says which names are allowed.
  const [schema] = Object.values(patternProperties as object);
  return { ...Object.fromEntries(members), additionalProperties: referenced(schema) };
}

/**
 * Only JavaScript has Unicode classes in this syntax. The description explains the restriction, and the lengths stay.
 */
function isPortable(pattern: string): boolean {
  return !pattern.includes('\\p{');
}

/** Whether the schema is an object, or a union of objects. */
function isBody(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('properties' in value || 'anyOf' in value);
}
