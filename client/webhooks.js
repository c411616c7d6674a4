/**
 * Verifies the events that Farebox sends, by the specification of Standard Webhooks: `webhook-signature` has
 * one HMAC-SHA-256 for each secret, over `<webhook-id>.<webhook-timestamp>.<body>`. Uses Web Crypto.
 */
import { FareboxError } from './errors.js';

const HMAC = { name: 'HMAC', hash: 'SHA-256' };
const TOLERANCE_SECONDS = 300;
const PREFIX = 'whsec_';
/** A stranger can cause this too: Express reads no body if the Content-Type is not the expected one. */
const PARSED =
  'The webhook cannot be verified: body must be the body of the request exactly as it arrived, as a string or bytes, because the signature covers it. ' +
  'Read it before a JSON parser does, for example with express.raw({ type: "application/json" })';

export async function verifyWebhook({
  body,
  headers,
  secret,
  toleranceSeconds = TOLERANCE_SECONDS,
}) {
  const read = readerOf(headers);
  const id = read('webhook-id');
  const timestamp = read('webhook-timestamp');
  const signatures = read('webhook-signature');
  if (!id || !timestamp || !signatures) throw refusal('a header of the signature is missing');
  const ageSeconds = Math.abs(Date.now() / 1_000 - Number(timestamp));
  if (!(ageSeconds <= toleranceSeconds)) throw refusal('it was signed at another time');
  if (typeof body !== 'string' && !isBytes(body))
    throw new FareboxError('invalid_signature', PARSED);
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  const key = await crypto.subtle.importKey('raw', secretBytes(secret), HMAC, false, ['verify']);
  for (const signature of signatures.split(' ')) {
    const [version, encoded = ''] = signature.split(',');
    const bytes = version === 'v1' ? bytesOf(encoded) : undefined;
    // Compares in constant time.
    if (bytes && (await crypto.subtle.verify(HMAC, key, bytes, signed))) {
      return { id, ...JSON.parse(text) };
    }
  }
  throw refusal('no signature matches this secret');
}

/** Reads `Headers`, or an object such as Node's, where a header that was sent twice may be an array. */
function readerOf(headers) {
  if (typeof headers.get === 'function') return (name) => headers.get(name);
  const entries = Object.entries(headers);
  const values = new Map(entries.map(([name, value]) => [name.toLowerCase(), value]));
  return (name) => [values.get(name)].flat().join(' ');
}

function secretBytes(secret) {
  const bytes =
    typeof secret === 'string' && secret.startsWith(PREFIX)
      ? bytesOf(secret.slice(PREFIX.length))
      : undefined;
  if (!bytes) throw new TypeError(`secret must be the endpoint's, which begins with ${PREFIX}`);
  return bytes;
}

/** True also for bytes that were created in another realm. */
function isBytes(body) {
  const kind = Object.prototype.toString.call(body);
  return ArrayBuffer.isView(body) || kind === '[object ArrayBuffer]';
}

/** Undefined unless it is base64. */
function bytesOf(base64) {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function refusal(why) {
  return new FareboxError('invalid_signature', `The webhook is not from Farebox: ${why}.`);
}
