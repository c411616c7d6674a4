/**
 * Identifiers: a UUIDv7 in the database, `<prefix>_<32 hex digits>` on the wire (specification
 * section 2). The mapping is one to one, so an id in any other form names nothing.
 */
const PREFIXES = {
  account: 'acct',
  consumer: 'cns',
  developer: 'dev',
  charge: 'chg',
  chargeRefund: 'rf',
  hold: 'hld',
  lease: 'lse',
  budget: 'bdg',
  approval: 'apr',
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
} as const;

export type IdKind = keyof typeof PREFIXES;

const HEX = /^[0-9a-f]{32}$/;

/** `('charge', '0190…-…')` to `chg_0190…`. */
export function wireId(kind: IdKind, uuid: string): string {
  return `${PREFIXES[kind]}_${hexOf(uuid)}`;
}

/** The regular expression for ids of this kind. */
export function idPattern(kind: IdKind): string {
  return `^${PREFIXES[kind]}_[0-9a-f]{32}$`;
}

/** A UUID's 32 digits. Slices, because each charge calls this several times. */
export function hexOf(uuid: string): string {
  return `${uuid.slice(0, 8)}${uuid.slice(9, 13)}${uuid.slice(14, 18)}${uuid.slice(19, 23)}${uuid.slice(24)}`;
}

/** `('charge', 'chg_0190…')` to the UUID, or `undefined` for anything else, such as an id of another kind. */
export function uuidOf(kind: IdKind, id: unknown): string | undefined {
  const prefix = PREFIXES[kind];
  if (typeof id !== 'string' || !id.startsWith(`${prefix}_`)) return undefined;
  const hex = id.slice(prefix.length + 1);
  return HEX.test(hex) ? uuidOfHex(hex) : undefined;
}

function uuidOfHex(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** No row has this id. It comes before all others. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000';

/** A UUIDv7 could hold later instants, but ISO 8601 with four-digit years ends here. */
export const TIME_MS_MAX = Date.UTC(9999, 11, 31);

/** The instant inside a UUIDv7, in milliseconds since 1970. */
export function uuidTimeMs(uuid: string): number {
  return Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16);
}

/** The same as ISO 8601. */
export function uuidTime(uuid: string): string {
  return new Date(uuidTimeMs(uuid)).toISOString();
}

/** The last millisecond that the 48 bits of a UUIDv7 can hold, in the year 10889. */
const UUID_TIME_MS_MAX = 2 ** 48 - 1;

/**
 * The smallest UUIDv7 of a millisecond: a bound for range scans by time. Throws for a time that no UUIDv7 can hold,
 * because its digits would give a bound in the wrong place.
 */
export function uuidFloor(timeMs: number): string {
  if (!(timeMs >= 0 && timeMs <= UUID_TIME_MS_MAX)) {
    throw new RangeError(`no UUIDv7 can hold the time ${timeMs}`);
  }
  return uuidOfHex(`${timeMs.toString(16).padStart(12, '0')}70008000000000000000`);
}

const TAIL_DIGITS = 4;

/** How many ids of one millisecond keep their order. */
const ORDERED_MAX = 4_096;
const VERSION_7 = 0x7000;

/**
 * Makes UUIDv7s of this millisecond: each comes after those with a lower `index`. It ends with the last four digits of
 * `owner`, which decide the ledger (`ledgerOf`): the id of a consumer, or of anything that belongs to it. It
 * has 46 bits of `random`, in which only ids of one consumer and one millisecond have to differ.
 */
export function idsAt(timeMs: number): (index: number, owner: string, random: string) => string {
  const time = Math.floor(timeMs).toString(16).padStart(12, '0');
  const begin = `${time.slice(0, 8)}-${time.slice(8)}-`;
  return (index, owner, random) => {
    const order = (VERSION_7 + Math.min(index, ORDERED_MAX - 1)).toString(16);
    return begin + order + random.slice(18, -TAIL_DIGITS) + owner.slice(-TAIL_DIGITS);
  };
}

/** Where a new consumer is kept, and everything whose id has its tail. */
export function ledgerOf(uuid: string, ledgerCount: number): number {
  return Number.parseInt(uuid.slice(-TAIL_DIGITS), 16) % ledgerCount;
}

/** Writes a UUID as its 16 bytes. */
export function writeUuid(into: Uint8Array, at: number, uuid: string): void {
  const hex = hexOf(uuid);
  for (let index = 0; index < 16; index += 1) {
    into[at + index] = Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16);
  }
}

export function uuidOfBytes(bytes: Uint8Array, at: number): string {
  const pairs = Array.from(bytes.subarray(at, at + 16), (byte) =>
    byte.toString(16).padStart(2, '0'),
  );
  return uuidOfHex(pairs.join(''));
}
