/**
 * Signed links to one approval, for the mail to the owner of the account. With a link, anyone can read and decide this
 * approval, until it expires, and nothing else.
 */
import { uuidOfBytes, writeUuid } from '../domain/ids.ts';
import type { MasterSecrets } from '../domain/master-secrets.ts';
import { FIELDS_AT, SignedTokens } from './signed-tokens.ts';

export interface ApprovalLink {
  readonly approvalId: string;
  readonly expiresAtMs: number;
}

/** Key number, approval, expiry in seconds. */
const AT = { approval: FIELDS_AT, expiry: 18, end: 24 } as const;

export class ApprovalLinks {
  readonly #consoleUrl: string;
  readonly #tokens: SignedTokens;

  constructor(masterSecrets: MasterSecrets, consoleUrl: string) {
    this.#consoleUrl = consoleUrl;
    this.#tokens = new SignedTokens(masterSecrets, 'farebox approval link', AT.end);
  }

  /** `id` is a UUID. */
  urlFor({ id, expiresAt }: { readonly id: string; readonly expiresAt: string }): string {
    const token = this.#tokens.make((fields) => {
      writeUuid(fields, AT.approval, id);
      fields.writeUIntBE(Math.ceil(Date.parse(expiresAt) / 1_000), AT.expiry, AT.end - AT.expiry);
    });
    return `${this.#consoleUrl}/approval?link=${token}`;
  }

  /** The content of a token that is ours and unchanged. The caller checks its expiry. */
  read(token: string): ApprovalLink | undefined {
    const fields = this.#tokens.open(token);
    return (
      fields && {
        approvalId: uuidOfBytes(fields, AT.approval),
        expiresAtMs: fields.readUIntBE(AT.expiry, AT.end - AT.expiry) * 1_000,
      }
    );
  }
}
