/** The errors that an endpoint can return, and their form in the document. */
import { ERRORS, errorTypeOf, type ErrorCode } from '../../domain/errors.ts';
import type { ErrorReply } from '../../schemas/errors.ts';
import type { Role } from '../authenticate.ts';
import type { Contract, Endpoint } from '../endpoint.ts';

const OF_ROLE: Readonly<Record<Role, ErrorCode>> = {
  consumer: 'invalid_api_key',
  either: 'invalid_api_key',
  developer: 'invalid_secret_key',
  payer: 'invalid_api_key',
  asker: 'invalid_api_key',
  legacy: 'invalid_api_key',
  session: 'session_required',
  operator: 'session_required',
};

const OF_BODY: readonly ErrorCode[] = [
  'invalid_json',
  'payload_too_large',
  'unsupported_media_type',
];

/** The codes that follow from the row, and those it names. */
export function errorCodesOf(
  endpoint: Contract & Pick<Endpoint, 'isWrite'>,
): ReadonlySet<ErrorCode> {
  const { query, body, errors = [], isIdempotent, isWrite, role } = endpoint;
  if (role === 'public') return new Set(['invalid_request', 'internal_error', ...errors]);
  return new Set<ErrorCode>([
    'invalid_request',
    'invalid_idempotency_key',
    OF_ROLE[role],
    ...(role === 'legacy' ? [] : (['session_required'] as const)),
    ...(role !== 'legacy' && (isWrite || body) ? (['foreign_origin'] as const) : []),
    ...(role === 'operator' ? (['operator_required', 'second_factor_required'] as const) : []),
    'rate_limited',
    'internal_error',
    'service_unavailable',
    ...(query?.properties['cursor'] ? (['invalid_cursor'] as const) : []),
    ...(body ? OF_BODY : []),
    ...(isIdempotent ? (['idempotency_key_reused'] as const) : []),
    ...(isWrite ? (['outcome_unknown'] as const) : []),
    ...errors,
  ]);
}

export function errorResponses(endpoint: Endpoint): Readonly<Record<string, unknown>> {
  const byStatus = Map.groupBy(errorCodesOf(endpoint), (code) => ERRORS[code][0]);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [String(status), response(status, codes)]),
  );
}

const header = (name: string) => ({ [name]: { $ref: `#/components/headers/${name}` } });

function response(status: number, codes: readonly ErrorCode[]): unknown {
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code][1]}`).join('\n\n'),
    headers: {
      ...header('X-Request-Id'),
      ...(status === 401 && header('WWW-Authenticate')),
      ...([402, 409, 429, 503].includes(status) && header('Retry-After')),
    },
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/ErrorReply' },
        examples: Object.fromEntries(
          codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]),
        ),
      },
    },
  };
}

/** An example of each code, without the additional members that some have. Messages are for people and may vary. */
export function errorExamples(endpoints: readonly Endpoint[]): Readonly<Record<string, unknown>> {
  const codes = new Set(endpoints.flatMap((endpoint) => [...errorCodesOf(endpoint)]));
  return Object.fromEntries([...codes].map((code) => [code, { value: exampleError(code) }]));
}

function exampleError(code: ErrorCode): ErrorReply {
  return {
    error: {
      type: errorTypeOf(code),
      code,
      message: ERRORS[code][1].replaceAll('`', ''),
      docUrl: `https://billing.example.com/docs/errors#${code}`,
      requestId: 'req_01a1fd6455e57aa3b31e95f51a48130e',
    },
  };
}
