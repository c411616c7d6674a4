/** The argument `<endpoint>` of the commands about webhooks. */
import { uuidOf } from '../domain/ids.ts';
import type { Connection } from '../store/database.ts';
import { findWebhookEndpoint, type WebhookEndpoint } from '../store/events/webhook-endpoints.ts';
import { CommandError } from './database-command.ts';

/** Finds the endpoint of any account: commands are for operators. */
export async function getEndpoint(connection: Connection, id: string): Promise<WebhookEndpoint> {
  const uuid = uuidOf('webhookEndpoint', id);
  const found = uuid === undefined ? null : await findWebhookEndpoint(connection, { id: uuid });
  if (!found) throw noSuchEndpoint(id);
  return found;
}

export function noSuchEndpoint(id: string): CommandError {
  return new CommandError(
    `Endpoint ${id} not found. Run \`farebox webhook list\` to see endpoint ids.`,
  );
}
