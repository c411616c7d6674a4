/**
 * Signatures of deliveries, by the specification of Standard Webhooks. An endpoint's secret is derived from a master
 * secret and stored nowhere, so a copy of the database signs nothing.
 */
import { createHmac, hkdfSync } from 'node:crypto';
import { wireId } from '../domain/ids.ts';
import type { MasterSecrets } from '../domain/master-secrets.ts';

/** The numbers of the endpoint's secret and of the master secret that it is derived from. */
export interface SecretNumbers {
  readonly secret: number;
  readonly master: number;
}

/** As the specification recommends: from 24 to 64 bytes. */
const SECRET_BYTES = 32;

export class WebhookSigner {
  /** The number of the master secret for new secrets. */
  readonly activeMaster: number;
  readonly #masters: ReadonlyMap<number, string>;

  /** A retired master secret signs for its endpoints until their owners roll them: their receivers know no other. */
  constructor({ active, all }: MasterSecrets) {
    this.#masters = all;
    this.activeMaster = active;
  }

  /** Whether the secret can be derived: its master secret is in the settings. */
  has({ master }: SecretNumbers): boolean {
    return this.#masters.has(master);
  }

  /** `whsec_` and base64, as it is shown to the owner. Throws for a secret that it does not have. */
  secretOf(endpointId: string, numbers: SecretNumbers): string {
    return `whsec_${this.#bytesOf(endpointId, numbers).toString('base64')}`;
  }

  /** The value of `webhook-signature`: one signature by each secret. Throws for a secret that it does not have. */
  sign(
    endpointId: string,
    secrets: readonly SecretNumbers[],
    message: { readonly id: string; readonly timestamp: number; readonly body: string },
  ): string {
    const signed = `${message.id}.${message.timestamp}.${message.body}`;
    return secrets
      .map((numbers) => createHmac('sha256', this.#bytesOf(endpointId, numbers)).update(signed))
      .map((mac) => `v1,${mac.digest('base64')}`)
      .join(' ');
  }

  #bytesOf(endpointId: string, { secret, master }: SecretNumbers): Buffer {
    const key = this.#masters.get(master);
    if (key === undefined) {
      throw new Error(`MASTER_SECRET has no secret number ${master}, which signs webhooks`);
    }
    const purpose = `farebox webhook ${wireId('webhookEndpoint', endpointId)} ${secret}`;
    return Buffer.from(hkdfSync('sha256', key, '', purpose, SECRET_BYTES));
  }
}
