/**
 * Registers our search attributes in a cluster, for `farebox migrate`, and finds missing ones, for `farebox doctor`.
 * The embedded server starts with them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isGrpcServiceError, type Connection } from '@temporalio/client';
import { SEARCH_ATTRIBUTES, type SearchAttributeName } from '../domain/search-attributes.ts';

/** Numbers of `temporal.api.enums.v1.IndexedValueType`. */
const INDEXED_VALUE_TYPE = { Keyword: 2, Double: 4, Bool: 5 } as const;

const REGISTERED_WITHIN_MS = 30_000;

type OperatorConnection = Pick<Connection, 'operatorService'>;

/** `not_permitted`: the server leaves that to its operators, as Temporal Cloud does. */
type Registration = { readonly kind: 'registered' } | { readonly kind: 'not_permitted' };

/** Status codes of gRPC with which a server refuses the operators' calls: PERMISSION_DENIED and UNIMPLEMENTED. */
const REFUSALS: ReadonlySet<number> = new Set([7, 12]);

/** Registers missing attributes and resolves when the server knows them. Safe to repeat. */
export async function ensureSearchAttributes(
  connection: OperatorConnection,
  namespace: string,
): Promise<Registration> {
  try {
    await register(connection, namespace);
    return { kind: 'registered' };
  } catch (error) {
    if (isRefusal(error)) return { kind: 'not_permitted' };
    throw error;
  }
}

/** The missing search attributes. None where clients may not ask. */
export async function listMissingSearchAttributes(
  connection: OperatorConnection,
  namespace: string,
): Promise<readonly SearchAttributeName[]> {
  try {
    return await missingFrom(connection, namespace);
  } catch (error) {
    if (isRefusal(error)) return [];
    throw error;
  }
}

function isRefusal(error: unknown): boolean {
  return isGrpcServiceError(error) && REFUSALS.has(error.code);
}

/** What to do where clients may not register search attributes. */
export function registerByHand(namespace: string): string {
  const attributes = Object.entries(SEARCH_ATTRIBUTES).map(
    ([name, type]) => ` \\\n  --search-attribute "${name}=${type}"`,
  );
  return (
    `The Temporal namespace ${namespace} does not let clients register search attributes. If you have not yet, run:\n\n` +
    `tcld namespace search-attributes add --namespace ${namespace}${attributes.join('')}\n`
  );
}

async function register(connection: OperatorConnection, namespace: string): Promise<void> {
  const missing = await missingFrom(connection, namespace);
  if (missing.length === 0) return;
  await connection.operatorService.addSearchAttributes({
    namespace,
    searchAttributes: Object.fromEntries(
      missing.map((name) => [name, INDEXED_VALUE_TYPE[SEARCH_ATTRIBUTES[name]]]),
    ),
  });
  const deadline = Date.now() + REGISTERED_WITHIN_MS;
  while ((await missingFrom(connection, namespace)).length > 0) {
    if (Date.now() > deadline)
      throw new Error(`search attributes not registered: ${missing.join(', ')}`);
    await sleep(200);
  }
}

async function missingFrom(
  connection: OperatorConnection,
  namespace: string,
): Promise<SearchAttributeName[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const names = Object.keys(SEARCH_ATTRIBUTES) as SearchAttributeName[];
  return names.filter((name) => !(name in (customAttributes ?? {})));
}
