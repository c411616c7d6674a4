/**
 * Encodes arrays in Postgres' binary format. Only the statements of charges and holds use it: as text, their arrays
 * cost both sides several times as much.
 */
import { hexOf } from '../../domain/ids.ts';

/** Object ids of the element types, the same in every database. */
const OID = { int2: 21, int4: 23, int8: 20, text: 25, uuid: 2950 } as const;
/** Number of dimensions, null flag, element type; then length and lower bound of the only dimension. */
const HEADER_BYTES = 20;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;
const TWO_TO_32 = 0x1_0000_0000;

export function int2Array(values: readonly number[]): Buffer {
  return encode('int2', 2 * values.length, values, (bytes, value, at) =>
    bytes.writeInt16BE(value, at),
  );
}

export function int4Array(values: readonly number[]): Buffer {
  return encode('int4', 4 * values.length, values, (bytes, value, at) =>
    bytes.writeInt32BE(value, at),
  );
}

/** Values must be safe integers. */
export function int8Array(values: readonly number[]): Buffer {
  return encode('int8', 8 * values.length, values, (bytes, value, at) => {
    bytes.writeInt32BE(Math.floor(value / TWO_TO_32), at);
    return bytes.writeUInt32BE(value >>> 0, at + 4);
  });
}

/** Values of 64 bits, as 16 hexadecimal digits in two's complement. */
export function int8ArrayOfHex(values: readonly (string | null)[]): Buffer {
  return encode(
    'int8',
    8 * values.length,
    values,
    (bytes, value, at) => at + bytes.write(value, at, 'hex'),
  );
}

export function uuidArray(values: readonly string[]): Buffer {
  return encode(
    'uuid',
    16 * values.length,
    values,
    (bytes, value, at) => at + bytes.write(hexOf(value), at, 'hex'),
  );
}

export function textArray(values: readonly (string | null)[]): Buffer {
  const bytes = values.reduce((sum, value) => sum + (value ? Buffer.byteLength(value) : 0), 0);
  return encode('text', bytes, values, (buffer, value, at) => at + buffer.write(value, at));
}

/** `write` returns the offset at which it ended. */
function encode<T>(
  type: keyof typeof OID,
  contentBytes: number,
  values: readonly (T | null)[],
  write: (bytes: Buffer, value: T, at: number) => number,
): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + LENGTH_BYTES * values.length + contentBytes);
  bytes.writeInt32BE(1, 0);
  bytes.writeInt32BE(values.includes(null) ? 1 : 0, 4);
  bytes.writeInt32BE(OID[type], 8);
  bytes.writeInt32BE(values.length, 12);
  bytes.writeInt32BE(1, 16);
  let at = HEADER_BYTES;
  for (const value of values) {
    const from = at + LENGTH_BYTES;
    at = value === null ? from : write(bytes, value, from);
    bytes.writeInt32BE(value === null ? NULL_LENGTH : at - from, from - LENGTH_BYTES);
  }
  return bytes.subarray(0, at);
}
