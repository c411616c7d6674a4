/** Endpoints in the ledger of a test, and what a worker does for one of them. */
import assert from 'node:assert/strict';
import { Type } from 'typebox';
import { SharedPlaces } from '../../src/domain/shared-places.ts';
import { sendDue } from '../../src/events/send-due.ts';
import { WebhookSigner } from '../../src/events/signing.ts';
import { readMasterSecrets } from '../../src/read-setting.ts';
import { row, sql } from '../../src/store/database.ts';
import { recordFailed } from '../../src/store/events/deliveries.ts';
import { makeWebhookEndpoint } from '../../src/store/events/webhook-endpoints.ts';
import type { TestLedger } from '../support/ledger.ts';
import { newPayer } from '../support/payer.ts';

const waitingRow = row(
  Type.Object({ attempts: Type.Integer(), dueAt: Type.String(), url: Type.String() }),
);

export const OLD = 'a'.repeat(32);
export const NEW = 'b'.repeat(32);
export const SENDING = {
  allowPrivate: true,
  retryMs: 60_000,
  onMissingMaster: () => {},
  mailOwners: () => Promise.resolve(),
  places: new SharedPlaces(200, 50),
};

export function signerWith(masterSecrets: string): WebhookSigner {
  return new WebhookSigner(readMasterSecrets({ MASTER_SECRET: masterSecrets }));
}

/** Sends what is due, until `stopping` aborts. */
export function sendIn(
  { database }: TestLedger,
  id: string,
  masterSecrets = OLD,
  stopping?: AbortSignal,
) {
  return sendDue({ ...SENDING, database, signer: signerWith(masterSecrets) }, id, stopping);
}

/** Records an attempt that the endpoint refused. Returns whether the endpoint should be disabled. */
export async function refuseIn(
  { database }: TestLedger,
  endpointId: string,
  eventId: string,
  retryMs: number,
) {
  const waiting = await database.one(sql.type(waitingRow)`
    select d.attempts, d.next_attempt_at::text as "dueAt", e.url
    from farebox.webhook_deliveries d join farebox.webhook_endpoints e on e.id = d.endpoint_id
    where d.event_id = ${eventId}
  `);
  const response = { durationMs: 1, responseStatus: 500, responseBody: '', error: null };
  return recordFailed(database, { endpointId, eventId, ...waiting, ...response }, retryMs);
}

export async function endpointIn({ database }: TestLedger, url = 'https://example.com/events') {
  const { accountId } = await newPayer(database);
  const settings = { url, types: null, description: '' };
  const made = await makeWebhookEndpoint(database, accountId, 1, settings);
  assert.ok('endpoint' in made);
  return made.endpoint;
}
