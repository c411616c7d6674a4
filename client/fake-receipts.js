/** Receipts of a FakeFarebox: signed as the service signs, with a key of its own. */
const KEY = crypto.getRandomValues(new Uint8Array(32));

export const FAKE_RECEIPT_KEYS = [{ id: '1', key: base64url(KEY) }];

export async function signReceipt(charge, developerId) {
  const { id, consumer, tool, micros, cardVersion, createdAt } = charge;
  const payload = {
    id,
    consumerId: consumer.id,
    developerId,
    tool,
    micros,
    createdAt,
    ...(cardVersion && { cardVersion }),
    livemode: false,
  };
  const encoder = new TextEncoder();
  const signed = `hmac_sha256.1.${base64url(encoder.encode(JSON.stringify(payload)))}`;
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', KEY, algorithm, false, ['sign']);
  const signature = await crypto.subtle.sign('HMAC', key, encoder.encode(signed));
  return `${signed}.${base64url(new Uint8Array(signature))}`;
}

function base64url(bytes) {
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
