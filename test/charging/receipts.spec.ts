/** Receipts: their text, that anyone with the key can verify it, and that nobody can change it. */
import assert from 'node:assert/strict';
import { createHmac, hkdfSync } from 'node:crypto';
import * as fc from 'fast-check';
import { ReceiptSigner, type ReceiptSubject } from '../../src/charging/receipts.ts';
import { uuidTimeMs, wireId } from '../../src/domain/ids.ts';
import { readMasterSecrets } from '../../src/read-setting.ts';

const OLD = 'the-first-secret-of-32-characters-and-more';
const NEW = 'the-second-secret-of-32-characters-and-more';
const secretsOf = (list: string) => readMasterSecrets({ MASTER_SECRET: list });
const signer = new ReceiptSigner(secretsOf(`1:${OLD}`));
const rotated = new ReceiptSigner(secretsOf(`2:${NEW},1:${OLD}`));

const CHARGE: ReceiptSubject = {
  id: '0190b3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b',
  consumerId: '0190b3a0-0000-7000-8000-00000000000a',
  developerId: '0190b3a0-0000-7000-8000-00000000000b',
  tool: 'web search',
  amountMicros: 20_000,
  cardVersion: 0,
  receiptKey: 1,
  isTest: false,
};

const anyCharge: fc.Arbitrary<ReceiptSubject> = fc.record({
  id: fc.uuid({ version: 7 }).filter((id) => uuidTimeMs(id) < Date.UTC(9999, 0)),
  consumerId: fc.uuid(),
  developerId: fc.uuid(),
  tool: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 100 }),
  amountMicros: fc.integer({ min: 1, max: 1_000_000_000_000 }),
  cardVersion: fc.integer({ min: 0, max: 32_767 }),
  receiptKey: fc.constantFrom(1, 2),
  isTest: fc.boolean(),
});

/** Any UTF-16, including lone surrogates. */
const anyText = fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)) });

function partsOf(receipt: string): [algorithm: string, key: string, payload: string, mac: string] {
  const parts = receipt.split('.');
  assert.equal(parts.length, 4);
  return parts as ReturnType<typeof partsOf>;
}

/** How a developer verifies offline, with the key alone. */
function macOf(receipt: string, key: string): string {
  const [algorithm, id, payload] = partsOf(receipt);
  return createHmac('sha256', Buffer.from(key, 'base64url'))
    .update(`${algorithm}.${id}.${payload}`)
    .digest('base64url');
}

function keyOf(who: ReceiptSigner, developerId: string, id: number): string {
  return who.developerKeys(developerId).find((key) => key.id === id)?.key ?? '';
}

describe('receipts', () => {
  it('state the charge in a form that never changes', () => {
    const receipt = signer.sign(CHARGE);
    const [algorithm, key, payload, mac] = partsOf(receipt);
    assert.deepEqual([algorithm, key], ['hmac_sha256', '1']);
    assert.deepEqual(JSON.parse(Buffer.from(payload, 'base64url').toString()), {
      id: 'chg_0190b3a01c2d7e3f8a4b5c6d7e8f9a0b',
      consumerId: 'cns_0190b3a000007000800000000000000a',
      developerId: 'dev_0190b3a000007000800000000000000b',
      tool: 'web search',
      micros: 20_000,
      createdAt: new Date(0x0190b3a01c2d).toISOString(),
    });
    assert.match(mac, /^[\w-]{43}$/);
    assert.equal(signer.sign(CHARGE), receipt);
  });

  it('are signed by HMAC-SHA-256 with the key that their developer is shown', () => {
    fc.assert(
      fc.property(anyCharge, (charge) => {
        const receipt = rotated.sign(charge);
        const key = keyOf(rotated, charge.developerId, charge.receiptKey);
        assert.equal(partsOf(receipt)[3], macOf(receipt, key));
      }),
    );
  });

  it('have a key of their own for each developer, derived by HKDF from the master secret', () => {
    const info = `farebox receipt ${wireId('developer', CHARGE.developerId)}`;
    const derived = Buffer.from(hkdfSync('sha256', OLD, '', info, 32)).toString('base64url');
    assert.equal(keyOf(signer, CHARGE.developerId, 1), derived);
    const other = keyOf(signer, CHARGE.consumerId, 1);
    const receipt = signer.sign(CHARGE);
    assert.notEqual(other, derived);
    assert.notEqual(macOf(receipt, other), partsOf(receipt)[3]);
  });

  it('come back from verification as the charge that was signed', () => {
    fc.assert(
      fc.property(anyCharge, (charge) => {
        const createdAt = new Date(uuidTimeMs(charge.id)).toISOString();
        assert.deepEqual(rotated.verify(rotated.sign(charge)), { ...charge, createdAt });
      }),
    );
  });

  it('are invalid with any one character changed, added or missing', () => {
    const receipt = signer.sign(CHARGE);
    const anyCharacter = fc.constantFrom('0', 'A', 'z', '-', '_', '.', '=', '\n', 'é');
    fc.assert(
      fc.property(fc.nat(receipt.length), anyCharacter, (at, character) => {
        const others = [
          receipt.slice(0, at) + character + receipt.slice(at + 1),
          receipt.slice(0, at) + character + receipt.slice(at),
          receipt.slice(0, at) + receipt.slice(at + 1),
        ];
        for (const other of others) {
          if (other !== receipt) assert.equal(signer.verify(other), undefined, other);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('have one spelling: the same fields signed in another order are invalid', () => {
    const key = keyOf(signer, CHARGE.developerId, 1);
    const said = JSON.parse(
      Buffer.from(partsOf(signer.sign(CHARGE))[2], 'base64url').toString(),
    ) as Record<string, unknown>;
    const forge = (payload: object, id = '1') => {
      const text = Buffer.from(JSON.stringify(payload)).toString('base64url');
      const unsigned = `hmac_sha256.${id}.${text}.x`;
      return unsigned.replace(/x$/, macOf(unsigned, key));
    };
    assert.equal(forge(said), signer.sign(CHARGE));
    const { tool, ...rest } = said;
    assert.equal(signer.verify(forge({ tool, ...rest })), undefined);
    assert.equal(signer.verify(forge({ ...said, extra: 1 })), undefined);
    assert.equal(signer.verify(forge({ ...said, createdAt: '2026-01-01' })), undefined);
    assert.equal(signer.verify(forge(said, '01')), undefined);
  });

  it('of one developer cannot be made with the key of another', () => {
    const receipt = signer.sign(CHARGE);
    const forged = receipt.replace(/[^.]+$/, macOf(receipt, keyOf(signer, CHARGE.consumerId, 1)));
    assert.equal(signer.verify(forged), undefined);
  });

  it('keep their bytes and stay valid when a new secret signs new ones', () => {
    assert.equal(signer.activeKey, 1);
    assert.equal(rotated.activeKey, 2);
    const receipt = signer.sign(CHARGE);
    assert.equal(rotated.sign(CHARGE), receipt);
    assert.ok(rotated.verify(receipt));
    assert.notEqual(rotated.sign({ ...CHARGE, receiptKey: 2 }), receipt);
    assert.equal(keyOf(rotated, CHARGE.developerId, 1), keyOf(signer, CHARGE.developerId, 1));
  });

  it('are invalid under an unknown secret, which never signs silently', () => {
    const unknown = rotated.sign({ ...CHARGE, receiptKey: 2 });
    assert.equal(signer.verify(unknown), undefined);
    assert.throws(() => signer.sign({ ...CHARGE, receiptKey: 2 }), /secret number 2/);
  });

  it('may be any text without harm', () => {
    fc.assert(
      fc.property(anyText, fc.json(), (text, json) => {
        const payload = Buffer.from(json).toString('base64url');
        assert.equal(signer.verify(text), undefined);
        assert.equal(signer.verify(`hmac_sha256.1.${payload}.${'A'.repeat(43)}`), undefined);
      }),
    );
  });
});
