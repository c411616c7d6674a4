/**
 * Encrypts what Temporal stores of workflows: inputs, results, messages, summaries and failures. Ids of workflows and
 * search attributes stay readable. Each payload names its key, so that older ones can be read after a rotation.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { DataConverter, Payload, PayloadCodec } from '@temporalio/common';
import { ROOT } from '../root.ts';

/** AES-256 keys of 32 bytes by number. The first encrypts; all decrypt. */
export type PayloadKeys = ReadonlyMap<number, Uint8Array>;

const ENCRYPTED = 'binary/encrypted';
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const FAILURES = join(ROOT, 'src/temporal/encrypted-failures.ts');

/** For clients, workers and replays alike. Undefined without keys: payloads are JSON. */
export function dataConverterOf(keys: PayloadKeys | undefined): DataConverter | undefined {
  if (!keys) return undefined;
  return { payloadCodecs: [payloadCodec(keys)], failureConverterPath: FAILURES };
}

export function payloadCodec(keys: PayloadKeys): PayloadCodec {
  return {
    encode: async (payloads) => payloads.map((payload) => encrypt(keys, payload)),
    decode: async (payloads) => payloads.map((payload) => decrypt(keys, payload)),
  };
}

function encrypt(keys: PayloadKeys, { metadata, data }: Payload): Payload {
  const [first] = keys;
  if (!first) throw new Error('there is no key to encrypt payloads with');
  const [number, key] = first;
  const plainEncoding = metadata?.['encoding'] ?? new Uint8Array();
  const keyNumber = Buffer.from(String(number));
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(boundTo(keyNumber, plainEncoding));
  const text = Buffer.concat([cipher.update(data ?? new Uint8Array()), cipher.final()]);
  return {
    metadata: {
      ...metadata,
      encoding: Buffer.from(ENCRYPTED),
      'encryption-key': keyNumber,
      'plain-encoding': plainEncoding,
    },
    data: Buffer.concat([nonce, cipher.getAuthTag(), text]),
  };
}

/** Returns a payload that is not encrypted unchanged: it was written before the codec was on. */
function decrypt(keys: PayloadKeys, payload: Payload): Payload {
  const { encoding, ...sealed } = payload.metadata ?? {};
  if (!encoding || Buffer.from(encoding).toString() !== ENCRYPTED) return payload;
  const {
    'encryption-key': keyNumber = new Uint8Array(),
    'plain-encoding': plainEncoding = new Uint8Array(),
    ...metadata
  } = sealed;
  const number = Buffer.from(keyNumber).toString();
  const key = keys.get(Number(number));
  if (!key) throw new Error(`TEMPORAL_PAYLOAD_KEYS does not have key ${number} of a payload`);
  const data = Buffer.from(payload.data ?? new Uint8Array());
  const nonce = data.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(boundTo(keyNumber, plainEncoding));
  decipher.setAuthTag(data.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  const text = decipher.update(data.subarray(NONCE_BYTES + TAG_BYTES));
  return {
    metadata: { ...metadata, encoding: plainEncoding },
    data: Buffer.concat([text, decipher.final()]),
  };
}

function boundTo(keyNumber: Uint8Array, plainEncoding: Uint8Array): Buffer {
  return Buffer.concat([keyNumber, Buffer.from('\0'), plainEncoding]);
}
