/** The table of error codes: what a client may conclude from a code, a status and a type. */
import assert from 'node:assert/strict';
import { ApiError, ERRORS, errorTypeOf, type ErrorCode } from '../../src/domain/errors.ts';

const CODES = Object.keys(ERRORS) as ErrorCode[];

describe('error codes', () => {
  it('have those of the specification (section 7)', () => {
    assert.equal(new ApiError('insufficient_balance', 'x').status, 402);
    assert.equal(new ApiError('invalid_api_key', 'x').status, 401);
    assert.equal(new ApiError('service_unavailable', 'x').status, 503);
  });

  it('have no stack when they are refusals, which nobody reads, and one when they are faults', () => {
    const { stackTraceLimit } = Error;
    assert.doesNotMatch(new ApiError('insufficient_balance', 'x').stack ?? '', /errors\.spec/);
    assert.match(new ApiError('internal_error', 'x').stack ?? '', /errors\.spec/);
    assert.equal(Error.stackTraceLimit, stackTraceLimit);
  });

  it('have one status each, and advice in a full sentence', () => {
    for (const code of CODES) {
      const [status, meaning] = ERRORS[code];
      assert.match(code, /^[a-z_]+$/);
      assert.ok(status >= 400 && status <= 503, code);
      assert.match(meaning, /^[A-Z].+\.$/, code);
    }
  });

  it('have a type that says who has to act', () => {
    assert.equal(errorTypeOf('invalid_amount'), 'invalid_request_error');
    assert.equal(errorTypeOf('not_found'), 'invalid_request_error');
    assert.equal(errorTypeOf('invalid_api_key'), 'authentication_error');
    assert.equal(errorTypeOf('insufficient_balance'), 'payment_error');
    assert.equal(errorTypeOf('rate_limited'), 'rate_limit_error');
    assert.equal(errorTypeOf('idempotency_key_reused'), 'idempotency_error');
    assert.equal(errorTypeOf('idempotency_key_in_use'), 'idempotency_error');
    assert.equal(errorTypeOf('tool_exists'), 'invalid_request_error');
    assert.equal(errorTypeOf('outcome_unknown'), 'api_error');
    assert.equal(errorTypeOf('service_unavailable'), 'api_error');
  });
});
