/** What checks the replies: the compiler for handlers, and the tests' own `call` for replies on the wire. */
import assert from 'node:assert/strict';
import { asMicros } from '../../src/domain/money.ts';
import type { Reply } from '../../src/http/endpoint.ts';
import { get } from '../../src/http/read-endpoints.ts';
import { errorCodesOf } from '../../src/http/openapi/errors.ts';
import { ENDPOINTS } from '../../src/http/routes.ts';
import { IntentReply } from '../../src/schemas/agents.ts';
import { BalanceReply, type LowBalanceReply } from '../../src/schemas/balance.ts';
import { FAILURE_CODES } from '../../src/stripe/verdict.ts';
import { assertInContract } from '../support/contract.ts';

const intent = { name: 'weather', confidence: 1 };

async function whole(): Promise<Reply<IntentReply>> {
  return { status: 200, body: { intent } };
}

async function tooMuch(): Promise<Reply<IntentReply>> {
  // @ts-expect-error a member that the schema does not have
  return { status: 200, body: { intent, more: 1 } };
}

async function tooLittle(): Promise<Reply<IntentReply>> {
  // @ts-expect-error a member is missing
  return { status: 200, body: {} };
}

async function inMicros(): Promise<Reply<LowBalanceReply>> {
  // @ts-expect-error micro-dollars, a million times as much as dollars
  return { status: 200, body: { threshold: asMicros(1) } };
}

async function created(): Promise<Reply<IntentReply, 201>> {
  return { status: 201, body: { intent } };
}

/** `tsc` fails when an expected error does not occur. */
const rows = () => {
  const row = {
    operation: 'previewIntent',
    role: 'legacy',
    replies: { 200: IntentReply },
  } as const;
  return [
    get('/', { ...row, handle: whole }),
    // @ts-expect-error a status that the row does not name
    get('/', { ...row, handle: created }),
    // @ts-expect-error a reply that is not the row's
    get('/', { ...row, replies: { 200: BalanceReply }, handle: whole }),
  ];
};

describe('a reply', () => {
  const headers = new Headers();
  const received = (status: number, body: unknown) => () =>
    assertInContract('POST', '/intent/preview', { status, headers, body });

  it('from a handler has the schema of its status, by the compiler', () => {
    assert.equal(rows().length, 3);
    for (const handle of [whole, tooMuch, tooLittle, inMicros])
      assert.equal(typeof handle, 'function');
  });

  it('with an extra or a missing member fails the test that receives it', () => {
    received(200, { intent })();
    assert.throws(received(200, { intent, more: 1 }), /additional properties/);
    assert.throws(received(200, {}), /required property/);
  });

  it('with an undocumented status or code fails the test that receives it', () => {
    assert.throws(received(201, { intent }), /not documented/);
    const error = {
      type: 'payment_error',
      code: 'card_declined',
      message: 'Your card was declined.',
      docUrl: 'http://127.0.0.1/docs/errors#card_declined',
      requestId: 'req_1',
    };
    assert.throws(received(402, { error }), /not documented/);
  });

  it('may give each reason why the saved card was not charged, to a decision as to a top-up', () => {
    const missing = ['createTopUp', 'decideApproval'].flatMap((operation) => {
      const documented = errorCodesOf(
        ENDPOINTS.find((endpoint) => endpoint.operation === operation) ?? assert.fail(operation),
      );
      return FAILURE_CODES.filter((code) => !documented.has(code));
    });
    assert.deepEqual(missing, []);
  });

  it('may say that a key is in use wherever requests wait for their turn in a batch', () => {
    const documented = ENDPOINTS.filter((endpoint) =>
      errorCodesOf(endpoint).has('idempotency_key_in_use'),
    );
    assert.deepEqual(documented.map(({ operation }) => operation).toSorted(), [
      'captureHold',
      'createCharge',
      'createHold',
      'extendHold',
    ]);
  });
});
