/** The form of keys (specification section 5): kinds, and a checksum that finds typing errors early. */
import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import * as fc from 'fast-check';
import { composeKey, KEY_LENGTH_MAX, kindOfKey, type KeyKind } from '../../src/domain/api-keys.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const KINDS = ['consumer', 'developer', 'legacy'] as const satisfies readonly KeyKind[];
const anyRandom = fc.uint8Array({ minLength: 64, maxLength: 64 }).filter(isEnough);
const anyKey = fc
  .tuple(fc.constantFrom(...KINDS), anyRandom)
  .map(([kind, random]) => ({ kind, key: composeKey('fare', kind, random, 'live') }));
const anyCharacter = fc.constantFrom(...BASE62.split(''), '_', '-', '.', ' ', 'é');
/** Any UTF-16, including lone surrogates. */
const anyText = fc.string({
  unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)),
  maxLength: 200,
});

/** 64 random bytes practically always contain 32 usable ones. */
function isEnough(random: Uint8Array): boolean {
  return random.filter((byte) => byte < 248).length >= 32;
}

describe('keys', () => {
  it('have the prefix and marks of their kind, then 38 letters and digits', () => {
    const random = new Uint8Array(64).map((_, index) => index * 3);
    assert.match(composeKey('fare', 'consumer', random, 'live'), /^fare_ck_live_[0-9A-Za-z]{38}$/);
    assert.match(composeKey('fare', 'developer', random, 'live'), /^fare_sk_live_[0-9A-Za-z]{38}$/);
    assert.match(composeKey('fare', 'legacy', random, 'live'), /^fare_sk_[0-9A-Za-z]{38}$/);
  });

  it('are recognized as the kind that they were created as', () => {
    fc.assert(
      fc.property(anyKey, ({ kind, key }) => {
        assert.equal(kindOfKey('fare', key), kind);
        assert.ok(key.length <= KEY_LENGTH_MAX);
      }),
    );
  });

  it('end in the CRC-32 of what comes before, in base 62', () => {
    fc.assert(
      fc.property(anyKey, ({ key }) => {
        let value = 0;
        for (const digit of key.slice(-6)) value = value * 62 + BASE62.indexOf(digit);
        assert.equal(value, crc32(key.slice(0, -6)));
      }),
    );
  });

  it('are not recognized with any one character changed', () => {
    const position = fc.nat(50);
    fc.assert(
      fc.property(anyKey, position, anyCharacter, ({ key }, at, character) => {
        fc.pre(at < key.length && key[at] !== character);
        assert.equal(
          kindOfKey('fare', key.slice(0, at) + character + key.slice(at + 1)),
          undefined,
        );
      }),
      { numRuns: 2_000 },
    );
  });

  it('are not recognized with two neighbors swapped, one missing or one too many', () => {
    fc.assert(
      fc.property(anyKey, fc.nat(50), anyCharacter, ({ key }, at, character) => {
        const swapped =
          key.slice(0, at) + (key[at + 1] ?? '') + (key[at] ?? '') + key.slice(at + 2);
        if (swapped !== key) assert.equal(kindOfKey('fare', swapped), undefined);
        if (at < key.length) {
          assert.equal(kindOfKey('fare', key.slice(0, at) + key.slice(at + 1)), undefined);
        }
        const longer = key.slice(0, at) + character + key.slice(at);
        assert.equal(kindOfKey('fare', longer), undefined);
      }),
      { numRuns: 1_000 },
    );
  });

  it('cannot pass as another kind or prefix by renaming', () => {
    fc.assert(
      fc.property(anyKey, ({ kind, key }) => {
        const renamed = { consumer: '_sk_live_', developer: '_ck_live_', legacy: '_sk_live_' };
        const marks = { consumer: '_ck_live_', developer: '_sk_live_', legacy: '_sk_' };
        assert.equal(kindOfKey('fare', key.replace(marks[kind], renamed[kind])), undefined);
        assert.equal(kindOfKey('toll', key), undefined);
        assert.equal(kindOfKey('toll', key.replace('fare', 'toll')), undefined);
      }),
    );
  });

  it('may be any text without harm', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        assert.equal(kindOfKey('fare', text), undefined);
        assert.equal(kindOfKey('fare', `fare_ck_live_${text}`), undefined);
      }),
    );
  });

  it('skip random bytes that would make some characters likelier than others', () => {
    const plain = composeKey('fare', 'legacy', new Uint8Array(64).fill(7), 'live');
    const mixed = Uint8Array.from({ length: 64 }, (_, index) => (index % 2 === 0 ? 248 : 7));
    assert.equal(composeKey('fare', 'legacy', mixed, 'live'), plain);
    assert.throws(
      () => composeKey('fare', 'legacy', new Uint8Array(64).fill(255), 'live'),
      RangeError,
    );
  });
});
