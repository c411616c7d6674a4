/** Identifiers: each UUID has one spelling on the wire, and no other spelling is accepted. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { uuidFloor, uuidOf, uuidTimeMs, wireId, type IdKind } from '../../src/domain/ids.ts';

const PREFIXES: Readonly<Record<IdKind, string>> = {
  account: 'acct',
  consumer: 'cns',
  developer: 'dev',
  charge: 'chg',
  budget: 'bdg',
  approval: 'apr',
  lease: 'lse',
  hold: 'hld',
  chargeRefund: 'rf',
  tool: 'tool',
  topUp: 'tu',
  topUpRefund: 'tur',
  dispute: 'dsp',
  fraudWarning: 'frw',
  key: 'key',
  movement: 'mov',
  grant: 'gnt',
  invocation: 'inv',
  event: 'evt',
  webhookEndpoint: 'we',
};
const KINDS = Object.keys(PREFIXES) as IdKind[];
const anyKind = fc.constantFrom(...KINDS);

describe('ids', () => {
  it('have the prefix of their kind and the 32 digits of the UUID', () => {
    const uuid = '0190b3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b';
    for (const kind of KINDS) {
      assert.equal(wireId(kind, uuid), `${PREFIXES[kind]}_0190b3a01c2d7e3f8a4b5c6d7e8f9a0b`);
    }
  });

  it('come back as the same UUID, and only as their own kind', () => {
    fc.assert(
      fc.property(fc.uuid(), anyKind, anyKind, (uuid, kind, other) => {
        assert.equal(uuidOf(other, wireId(kind, uuid)), kind === other ? uuid : undefined);
      }),
    );
  });

  it('have one spelling: any accepted id is written the same way', () => {
    const almost = fc
      .tuple(fc.uuid(), anyKind, fc.nat(40), fc.string({ maxLength: 2 }))
      .map(([uuid, kind, at, text]) => {
        const id = wireId(kind, uuid);
        return [kind, id.slice(0, at) + text + id.slice(at + 1)] as const;
      });
    fc.assert(
      fc.property(almost, ([kind, id]) => {
        const uuid = uuidOf(kind, id);
        if (uuid !== undefined) assert.equal(wireId(kind, uuid), id);
      }),
    );
  });

  it('are refused in any other form', () => {
    const hex = '0190b3a01c2d7e3f8a4b5c6d7e8f9a0b';
    const others = [
      '',
      'chg_',
      hex,
      `chg_${hex.toUpperCase()}`,
      `CHG_${hex}`,
      `chg_${hex}0`,
      `chg_${hex}\n`,
      ` chg_${hex}`,
      'chg_0190b3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b',
      `__proto___${hex}`,
    ];
    for (const id of others) assert.equal(uuidOf('charge', id), undefined, id);
  });

  it('carry the millisecond in which they were made, and order by it', () => {
    const anyTime = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) });
    fc.assert(
      fc.property(anyTime, anyTime, (a, b) => {
        assert.equal(uuidTimeMs(uuidFloor(a)), a);
        assert.equal(uuidFloor(a) < uuidFloor(b), a < b);
      }),
    );
  });

  it('are never below the minimum id of their millisecond', () => {
    fc.assert(
      fc.property(fc.uuid({ version: 7 }), (uuid) => {
        const timeMs = uuidTimeMs(uuid);
        assert.ok(uuid >= uuidFloor(timeMs));
        // Nothing comes after the last millisecond.
        if (timeMs < 2 ** 48 - 1) assert.ok(uuid < uuidFloor(timeMs + 1));
      }),
    );
  });

  it('have a minimum id only for the milliseconds that a UUIDv7 can hold', () => {
    assert.equal(uuidFloor(0), '00000000-0000-7000-8000-000000000000');
    assert.equal(uuidFloor(2 ** 48 - 1), 'ffffffff-ffff-7000-8000-000000000000');
    for (const timeMs of [2 ** 48, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.throws(() => uuidFloor(timeMs), RangeError);
    }
  });
});
