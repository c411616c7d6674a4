/**
 * The hashes by which requests are recognized. Rows keep them for as long as a retry may come, so a release that
 * computed another hash would charge a retry of an earlier request again.
 */
import assert from 'node:assert/strict';
import {
  callIdentity,
  captureIdentity,
  chargeIdentity,
  extensionIdentity,
  holdIdentity,
  leaseIdentity,
  NO_IDENTITY,
  renewalIdentity,
} from '../../src/charging/idempotency.ts';
import { asMicros } from '../../src/domain/money.ts';
import { retryOf } from '../../src/http/repeated-requests.ts';

const consumerId = '019b0000-0000-7000-8000-00000000c001';
const developer = { developerId: '019b0000-0000-7000-8000-00000000d001' };
const holdId = '019b0000-0000-7000-8000-00000000a001';
const leaseId = '019b0000-0000-7000-8000-00000000b001';
const idempotencyKey = 'order-17';
const sender = { developer, idempotencyKey };
const metadata = { run: 7, agent: 'planner', isTrial: false, parent: null };
const sameMetadata = { parent: null, isTrial: false, agent: 'planner', run: 7 };

const units = { output: 350, input: 1_200 };

const chargeOf = (
  body: { amount?: number | string; units?: typeof units; metadata?: typeof metadata } = {},
) => chargeIdentity({ ...sender, body: { tool: 'search', ...body } }, consumerId);
const holdOf = (body: { amount?: number | string; expiresIn?: number } = {}) =>
  holdIdentity({ ...sender, body: { tool: 'search', ...body } }, consumerId);
const plainCapture = {
  amount: undefined,
  metadata: undefined,
  isFinal: true,
  over: 'reject',
} as const;
const tools = [
  { name: 'search', askedMicros: null },
  { name: 'summarize', askedMicros: asMicros(20_000) },
];
const lease = { ...sender, tools, amountMicros: asMicros(5_000_000) };
const call = { sequence: 3, tool: 'search', amountMicros: asMicros(10_000) };

const IDENTITIES = {
  'a charge by price': [chargeOf(), '0fb38586b3d46ab6520557', '8aa15af650'],
  'a charge of an amount': [chargeOf({ amount: 0.05 }), '0fb38586b3d46ab6520557', 'd6e69eab81'],
  'a charge with metadata': [
    chargeOf({ amount: '0.05', metadata }),
    '0fb38586b3d46ab6520557',
    '52943db11e',
  ],
  'a charge of units': [chargeOf({ units }), '0fb38586b3d46ab6520557', '35c4e8129e'],
  'a hold': [holdOf({ amount: 2 }), '0fb38586b3d46ab6520557', '0ff44143d8'],
  'a hold for a time': [
    holdOf({ amount: 2, expiresIn: 60 }),
    '0fb38586b3d46ab6520557',
    '3cce1f6890',
  ],
  'a capture of the rest': [
    captureIdentity({ ...sender, holdId }, plainCapture),
    '0dca6aefe37936c9158b0e',
    '8b062af99a',
  ],
  'a capture of an amount': [
    captureIdentity(
      { ...sender, holdId },
      { amount: '1.50', metadata, isFinal: false, over: 'overflow' },
    ),
    '0dca6aefe37936c9158b0e',
    '9e2a478445',
  ],
  'a capture of units': [
    captureIdentity({ ...sender, holdId }, { ...plainCapture, units }),
    '0dca6aefe37936c9158b0e',
    'c3331d6d54',
  ],
  'an extension': [
    extensionIdentity({ ...sender, holdId }, 900),
    '0a873557386b16dac402ca',
    'e0edce42b2',
  ],
  'a lease': [leaseIdentity(lease, consumerId, 600), 'fde287888570e2c10e2aae', '07bf6d52c2'],
  'a renewal': [
    renewalIdentity({ ...sender, leaseId }, 600, null),
    '6f49071931e9352216f815',
    'f043ae32d3',
  ],
  'a renewal of a fence': [
    renewalIdentity({ ...sender, leaseId }, 60, 2),
    '6f49071931e9352216f815',
    'c40b756860',
  ],
  'a call of a lease': [
    callIdentity({ developer, leaseId }, { ...call, metadata: undefined }),
    '549927d465d49ff9e6aca9',
    'f0d9408972',
  ],
  'a call with metadata': [
    callIdentity({ developer, leaseId }, { ...call, metadata }),
    '549927d465d49ff9e6aca9',
    'f8f77239cf',
  ],
} as const;

describe('the identity', () => {
  for (const [what, [identity, idempotencyHash, fingerprint]] of Object.entries(IDENTITIES)) {
    it(`of ${what} is the one that rows of earlier releases have`, () => {
      assert.deepEqual(identity, { idempotencyHash, fingerprint });
    });
  }

  it('of a request that makes a key, a budget or the like is the one that rows of earlier releases have', () => {
    const asked = { rolls: 'key', overlapSeconds: 60 };
    assert.deepEqual(retryOf(developer.developerId, idempotencyKey, asked), {
      idempotencyKey,
      keyHash: '6f850142998816443ca6b6e2d26260abc30decbf5cf183c9a8dfa16018b1b532',
      requestHash: '56d75f52afa716e8cb86c58593e923e45283566e1636274113e071b034c619e5',
    });
  });

  it('covers the meaning of an amount and of metadata, not how they are written', () => {
    const first = chargeOf({ amount: '0.05', metadata });
    assert.deepEqual(chargeOf({ amount: 0.05, metadata: sameMetadata }), first);
    assert.deepEqual(chargeOf({ units: { input: 1_200, output: 350 } }), chargeOf({ units }));
    assert.notDeepEqual(chargeOf({ units: { ...units, input: 1_201 } }), chargeOf({ units }));
    const other = chargeOf({ amount: 0.06, metadata });
    assert.equal(other.idempotencyHash, first.idempotencyHash);
    assert.notEqual(other.fingerprint, first.fingerprint);
  });

  it('of a request whose amount is none is that of no other request', () => {
    const amounts = [undefined, 'abc', Number.POSITIVE_INFINITY, 16, '0x10', 10, '1e1', ' 10', ''];
    for (const identityOf of [
      (amount?: number | string) => chargeOf(amount === undefined ? {} : { amount }),
      (amount?: number | string) => holdOf(amount === undefined ? {} : { amount }),
      (amount?: number | string) =>
        captureIdentity({ ...sender, holdId }, { ...plainCapture, amount }),
    ]) {
      const fingerprints = amounts.map((amount) => identityOf(amount).fingerprint);
      assert.equal(new Set(fingerprints).size, amounts.length);
    }
  });

  it('is absent without an idempotency key', () => {
    const keyless = { developer, idempotencyKey: undefined };
    const body = { tool: 'search' };
    for (const identity of [
      chargeIdentity({ ...keyless, body }, consumerId),
      holdIdentity({ ...keyless, body }, consumerId),
      captureIdentity({ ...keyless, holdId }, plainCapture),
      extensionIdentity({ ...keyless, holdId }, 900),
      leaseIdentity({ ...lease, ...keyless }, consumerId, 600),
      renewalIdentity({ ...keyless, leaseId }, 600, null),
    ]) {
      assert.deepEqual(identity, NO_IDENTITY);
    }
  });
});
