/** `farebox webhook test`, `deliveries` and `redeliver`: what was sent to a webhook endpoint, and sending it again. */
import { Option, type Command } from 'commander';
import { uuidOf, wireId } from '../domain/ids.ts';
import { DELIVERY_STATUSES, type DeliveryStatus } from '../domain/webhook-delivery.ts';
import type { Connection } from '../store/database.ts';
import {
  listDeliveries,
  postTest,
  redeliver as sendAgain,
  type Delivery,
} from '../store/events/deliveries.ts';
import type { WebhookEndpoint } from '../store/events/webhook-endpoints.ts';
import { common, type Common } from './common-options.ts';
import { CommandError, ifLost, withDatabase } from './database-command.ts';
import { columns, jsonLines, print } from './output.ts';
import { limitOf, LIMIT_MAX } from './limit.ts';
import { getEndpoint } from './webhook-endpoint.ts';

interface DeliveriesOptions extends Common {
  readonly status?: DeliveryStatus;
  readonly limit: number;
  readonly after?: string;
}

export function registerDeliveries(webhook: Command): void {
  common(webhook.command('test <endpoint>'))
    .description('send the event webhook_endpoint.test to an endpoint (we_…)')
    .action(test);
  common(webhook.command('deliveries <endpoint>'))
    .description('list the deliveries to an endpoint (we_…) and its responses, newest first')
    .addOption(new Option('--status <status>', 'only these').choices(DELIVERY_STATUSES))
    .option('--limit <n>', `at most this many, up to ${LIMIT_MAX}`, limitOf, 50)
    .option('--after <event>', 'continue after this event (evt_…)')
    .action(deliveries);
  common(webhook.command('redeliver <endpoint> <event>'))
    .description('resend an event (evt_…) to an endpoint (we_…)')
    .action(redeliver);
}

async function test(id: string, { json, dataDir }: Common): Promise<void> {
  await withDatabase(dataDir, async (database) => {
    const endpoint = await getActive(database, id);
    const data = { id: wireId('webhookEndpoint', endpoint.id) };
    print(shown(await postTest(database, endpoint, data)), json);
  }).catch(ifLost('Repeat the command: it sends another test.'));
}

async function deliveries(
  id: string,
  { status, limit, after, json, dataDir }: DeliveriesOptions,
): Promise<void> {
  const beforeId = after === undefined ? undefined : uuidOfEvent(after);
  const found = await withDatabase(dataDir, async (database) => {
    const endpoint = await getEndpoint(database, id);
    return listDeliveries(database, endpoint.id, status, { limit, beforeId });
  });
  process.stdout.write(json ? jsonLines(found.map(shown)) : columns(found.map(line)));
}

async function redeliver(id: string, event: string, { json, dataDir }: Common): Promise<void> {
  const eventId = uuidOfEvent(event);
  await withDatabase(dataDir, async (database) => {
    const endpoint = await getActive(database, id);
    const sent = await sendAgain(database, endpoint.id, eventId);
    if (!sent) throw new CommandError(`The endpoint has no delivery of event ${event}.`);
    print(shown(sent), json);
  }).catch(ifLost('Repeat the command: the endpoint may get the event twice, with the same id.'));
}

async function getActive(connection: Connection, id: string): Promise<WebhookEndpoint> {
  const endpoint = await getEndpoint(connection, id);
  if (endpoint.status === 'active') return endpoint;
  throw new CommandError(
    `Endpoint ${id} is disabled. Run \`farebox webhook set ${id} --enable\` first.`,
  );
}

function shown(delivery: Delivery): Record<string, string | number | null> {
  return {
    eventId: wireId('event', delivery.id),
    type: delivery.type,
    happenedAt: delivery.createdAt,
    status: delivery.status,
    attempts: delivery.attempts,
    attemptedAt: delivery.attemptedAt,
    nextAttemptAt: delivery.nextAttemptAt,
    durationMs: delivery.durationMs,
    responseStatus: delivery.responseStatus,
    responseBody: delivery.responseBody,
    failureReason: delivery.error,
  };
}

/** A table has no room for the answer's body. */
function line(delivery: Delivery): Record<string, string | number | null> {
  const { eventId, type, status, attempts, attemptedAt, responseStatus, failureReason } =
    shown(delivery);
  return { eventId, type, status, attempts, attemptedAt, responseStatus, failureReason } as Record<
    string,
    string | number | null
  >;
}

function uuidOfEvent(id: string): string {
  const uuid = uuidOf('event', id);
  if (uuid === undefined) throw new CommandError(`${id} is not the id of an event (evt_…).`);
  return uuid;
}
