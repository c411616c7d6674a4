/** The secrets of the console's sessions, each derived from a master secret. */
import { createHmac, hkdfSync } from 'node:crypto';
import type { MasterSecrets } from '../domain/master-secrets.ts';
import { isSameText } from '../signing/hmac.ts';

/** As the library takes them: the first one signs and encrypts, and all decrypt seeds of two-factor authentication. */
export function librarySecrets({ all }: MasterSecrets) {
  return [...all].map(([version, secret]) => ({ version, value: consoleSecretOf(secret) }));
}

/** One cookie of the library, with its value encoded as in a URI. */
const COOKIE = /(?<=^|;\s*)((?:__Host-)?farebox\.[\w.-]+)=([^;\s]+)/g;
/** The value and its signature in base64. */
const SIGNED = /^(.+)\.([\w+/]{43}=)$/s;

/**
 * Signatures of the library's cookies. The library verifies with the secret that signs, and with no other. So a cookie
 * that another trusted secret signed is signed again on its way to the library.
 */
export class CookieSignatures {
  readonly #active: string;
  readonly #others: readonly string[];

  constructor({ active, trusted }: MasterSecrets) {
    const signing = trusted.get(active);
    if (signing === undefined) throw new Error('the master secret that signs is not trusted');
    this.#active = consoleSecretOf(signing);
    this.#others = [...trusted]
      .filter(([number]) => number !== active)
      .map(([, secret]) => consoleSecretOf(secret));
  }

  /** `header` is that of a request, `Cookie`. */
  renewed(header: string): string {
    if (this.#others.length === 0) return header;
    return header.replace(COOKIE, (cookie, name: string, encoded: string) => {
      const [, value, signature] = SIGNED.exec(decoded(encoded)) ?? [];
      if (value === undefined || signature === undefined) return cookie;
      const isOther = this.#others.some((secret) => isSameText(signed(value, secret), signature));
      if (!isOther) return cookie;
      return `${name}=${encodeURIComponent(`${value}.${signed(value, this.#active)}`)}`;
    });
  }
}

function consoleSecretOf(masterSecret: string): string {
  const bytes = hkdfSync('sha256', masterSecret, '', 'farebox console', 32);
  return Buffer.from(bytes).toString('base64url');
}

function signed(value: string, secret: string): string {
  return createHmac('sha256', secret).update(value).digest('base64');
}

/** Empty if the text is not validly encoded. */
function decoded(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return '';
  }
}
