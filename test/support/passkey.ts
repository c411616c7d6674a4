/** A device that holds a passkey, in software: it signs what a browser's device would sign. */
import {
  createHash,
  createSign,
  generateKeyPairSync,
  randomBytes,
  type KeyObject,
} from 'node:crypto';
import type { Client } from 'pg';

export interface Passkey {
  /** The response to a challenge, for a page of this origin. */
  readonly respond: (challenge: string, origin: string) => object;
}

const USER_PRESENT_AND_VERIFIED = 0x05;
const HAS_KEY = 0x40;

/** Saves it for the person with this address. Passkeys of tests belong to the host `localhost`. */
export async function newPasskey(sql: Pick<Client, 'query'>, email: string): Promise<Passkey> {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const id = randomBytes(16).toString('base64url');
  await sql.query(
    `insert into console.passkeys (user_id, name, credential_id, public_key, counter, device_type, backed_up)
     select id, 'Laptop', $2, $3, 0, 'singleDevice', false from console.users where email = $1`,
    [email, id, cose(publicKey).toString('base64')],
  );
  return { respond: (challenge, origin) => sign(id, privateKey, challenge, origin) };
}

/** What a new device answers when it is registered, by a page of this origin. It proves nothing about its maker. */
export function registration(challenge: string, origin: string): object {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const id = randomBytes(16);
  const client = Buffer.from(JSON.stringify({ type: 'webauthn.create', challenge, origin }));
  const data = Buffer.concat([
    sha256('localhost'),
    Buffer.from([USER_PRESENT_AND_VERIFIED | HAS_KEY, 0, 0, 0, 0]),
    // No model of device.
    Buffer.alloc(16),
    Buffer.from([0, id.length]),
    id,
    cose(publicKey),
  ]);
  // As CBOR: {fmt: 'none', attStmt: {}, authData: data}.
  const attestation = Buffer.concat([
    Buffer.from('a363666d74646e6f6e656761747453746d74a0686175746844617461', 'hex'),
    Buffer.from([0x58, data.length]),
    data,
  ]);
  return {
    id: id.toString('base64url'),
    rawId: id.toString('base64url'),
    type: 'public-key',
    clientExtensionResults: {},
    response: {
      clientDataJSON: client.toString('base64url'),
      attestationObject: attestation.toString('base64url'),
    },
  };
}

function sign(id: string, privateKey: KeyObject, challenge: string, origin: string): object {
  const client = Buffer.from(JSON.stringify({ type: 'webauthn.get', challenge, origin }));
  const data = Buffer.concat([
    sha256('localhost'),
    Buffer.from([USER_PRESENT_AND_VERIFIED, 0, 0, 0, 0]),
  ]);
  const signature = createSign('sha256').update(data).update(sha256(client)).sign(privateKey);
  return {
    id,
    rawId: id,
    type: 'public-key',
    clientExtensionResults: {},
    response: {
      clientDataJSON: client.toString('base64url'),
      authenticatorData: data.toString('base64url'),
      signature: signature.toString('base64url'),
    },
  };
}

/** As a COSE key: elliptic curve, ES256, P-256, and the two coordinates. */
function cose(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return Buffer.concat([
    Buffer.from('a5010203262001215820', 'hex'),
    Buffer.from(x, 'base64url'),
    Buffer.from('225820', 'hex'),
    Buffer.from(y, 'base64url'),
  ]);
}

function sha256(data: string | Buffer): Buffer {
  return createHash('sha256').update(data).digest();
}
