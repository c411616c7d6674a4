/** `farebox webhook …`: the webhook endpoints of an account. A signing secret is shown once. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import { readEndpointConfig } from '../config.ts';
import { EVENT_TYPES, type EventType } from '../domain/events.ts';
import { wireId } from '../domain/ids.ts';
import {
  SECRET_OVERLAP_SECONDS,
  SECRET_OVERLAP_SECONDS_MAX,
  WEBHOOK_ENDPOINTS_MAX,
} from '../domain/webhook-endpoint.ts';
import { environmentOf } from '../embedded/environment.ts';
import { WebhookSigner } from '../events/signing.ts';
import {
  addEndpoint,
  changeEndpoint,
  rollSecret,
  type UrlRefused,
} from '../events/webhook-endpoints.ts';
import { ensureTestAccount, findTestAccount } from '../store/accounts/test-accounts.ts';
import type { Database } from '../store/database.ts';
import {
  deleteWebhookEndpoint,
  listWebhookEndpoints,
  type WebhookEndpoint,
} from '../store/events/webhook-endpoints.ts';
import { ensureSameMasterSecrets } from '../store/master-secrets.ts';
import { nullIfNone, orNone } from './budget-arguments.ts';
import { common, type Common } from './common-options.ts';
import { CommandError, getAccount, ifLost, SAME_AGAIN, withDatabase } from './database-command.ts';
import { columns, jsonLines, print } from './output.ts';
import { overlapOf } from './key-arguments.ts';
import { registerDeliveries } from './webhook-deliveries.ts';
import { getEndpoint, noSuchEndpoint } from './webhook-endpoint.ts';

interface TypesOption {
  readonly types?: readonly EventType[] | 'none';
}

interface AddOptions extends Common, TypesOption {
  readonly description: string;
  readonly test: boolean;
}

interface EndpointRules {
  readonly signer: WebhookSigner;
  readonly allowPrivate: boolean;
}

interface SetOptions extends Common, TypesOption {
  readonly url?: string;
  readonly description?: string;
  readonly enable?: true;
  readonly disable?: true;
}

export function register(webhook: Command): void {
  common(webhook.command('list <account>'))
    .description('list the endpoints of an account (email, acct_…, cns_… or dev_…)')
    .option('--test', 'list only the endpoints of test mode', false)
    .action(list);
  typesOption(common(webhook.command('add <account> <url>')))
    .description('add an endpoint and print its signing secret, which is shown once')
    .option('--description <text>', 'what the endpoint is for', descriptionOf, '')
    .option('--test', 'send events of test mode instead of live events', false)
    .action(add);
  typesOption(common(webhook.command('set <endpoint>')))
    .description('change an endpoint (we_…)')
    .option('--url <url>', 'where to send events')
    .option('--description <text>', 'what the endpoint is for', descriptionOf)
    .option('--enable', 'send events from now on')
    .option('--disable', 'stop sending events, and drop those that are waiting')
    .action(set);
  common(webhook.command('roll-secret <endpoint>'))
    .description('replace the signing secret of an endpoint (we_…), and print the new one')
    .addOption(
      new Option(
        '--overlap <time>',
        'how long the old secret also keeps signing: 0, 90s, 15m, 24h, at most 7d',
      )
        .argParser(secretOverlapOf)
        .default(SECRET_OVERLAP_SECONDS, '24h'),
    )
    .action(roll);
  common(webhook.command('remove <endpoint>'))
    .description('delete an endpoint (we_…) and its log')
    .action(remove);
  registerDeliveries(webhook);
}

const typesOption = (command: Command) =>
  command.option(
    '--types <types>',
    'the types of events to send, separated by commas, or none for all types',
    orNone(typesOf),
  );

async function list(who: string, { test, json, dataDir }: Common & { readonly test: boolean }) {
  const endpoints = await withDatabase(dataDir, async (database) => {
    const { id } = await getAccount(database, who);
    const accountId = test ? (await findTestAccount(database, id))?.accountId : id;
    if (accountId === undefined) return [];
    return listWebhookEndpoints(database, accountId, { limit: WEBHOOK_ENDPOINTS_MAX });
  });
  process.stdout.write(json ? jsonLines(endpoints.map(shown)) : columns(endpoints.map(line)));
}

async function add(who: string, url: string, options: AddOptions): Promise<void> {
  const { types = 'none', description, test, json, dataDir } = options;
  await withRules(dataDir, async (database, rules, ledgerCount) => {
    const { id } = await getAccount(database, who);
    const accountId = test ? (await ensureTestAccount(database, id, ledgerCount)).accountId : id;
    const settings = { url, types: nullIfNone(types), description };
    const added = await addEndpoint(database, accountId, settings, rules);
    if (added.kind === 'url_refused') throw refusedUrl(added);
    if (added.kind !== 'done') {
      throw new CommandError(`An account has at most ${WEBHOOK_ENDPOINTS_MAX} webhook endpoints.`);
    }
    print({ ...shown(added.endpoint), secret: added.secret }, json);
  }).catch(
    ifLost(
      `Look for it in \`farebox webhook list ${who}${test ? ' --test' : ''}\`. ` +
        'If it is there, `farebox webhook roll-secret` prints a new secret.',
    ),
  );
}

async function set(id: string, options: SetOptions): Promise<void> {
  const { url, types, description, enable, disable, json, dataDir } = options;
  if (enable && disable) throw new CommandError('Use either --enable or --disable.');
  const changes = {
    url,
    types: types === undefined ? undefined : nullIfNone(types),
    description,
    isEnabled: enable ?? (disable ? false : undefined),
  };
  if (Object.values(changes).every((change) => change === undefined)) {
    throw new CommandError('No change was given. See `farebox webhook set --help`.');
  }
  await withRules(dataDir, async (database, rules) => {
    const endpoint = await getEndpoint(database, id);
    const changed = await changeEndpoint(database, endpoint, changes, rules);
    if (changed.kind === 'url_refused') throw refusedUrl(changed);
    if (changed.kind === 'unknown') throw noSuchEndpoint(id);
    print(shown(changed.endpoint), json);
  }).catch(ifLost(SAME_AGAIN));
}

async function roll(
  id: string,
  { overlap, json, dataDir }: Common & { readonly overlap: number },
): Promise<void> {
  await withRules(dataDir, async (database, { signer }) => {
    const rolled = await rollSecret(database, await getEndpoint(database, id), overlap, signer);
    if (rolled.kind !== 'done') throw noSuchEndpoint(id);
    const { previousSecretUntil } = rolled.endpoint;
    print({ id, secret: rolled.secret, previousSecretExpiresAt: previousSecretUntil }, json);
  }).catch(
    ifLost(
      'Repeat the command, and give the receiver the printed secret at once: its earlier one may no longer sign.',
    ),
  );
}

async function remove(id: string, { json, dataDir }: Common): Promise<void> {
  await withDatabase(dataDir, async (database) => {
    const endpoint = await getEndpoint(database, id);
    await deleteWebhookEndpoint(database, endpoint);
    print(shown(endpoint), json);
  }).catch(ifLost('Repeat the command. If it does not find the endpoint, it was removed.'));
}

/**
 * The same as for the API: secrets are derived from its master secret, and its setting decides about private
 * addresses.
 */
async function withRules<T>(
  dataDir: string,
  work: (database: Database, rules: EndpointRules, ledgerCount: number) => Promise<T>,
): Promise<T> {
  const { masterSecrets, allowPrivateEndpoints } = readEndpointConfig(await environmentOf(dataDir));
  const rules = {
    signer: new WebhookSigner(masterSecrets),
    allowPrivate: allowPrivateEndpoints,
  };
  return withDatabase(dataDir, async (database, { ledgerCount }) => {
    await ensureSameMasterSecrets(database, masterSecrets);
    return work(database, rules, ledgerCount);
  });
}

function refusedUrl({ problem }: UrlRefused): CommandError {
  return new CommandError(`The URL ${problem}`);
}

function shown(endpoint: WebhookEndpoint): Record<string, string | null> {
  return {
    id: wireId('webhookEndpoint', endpoint.id),
    url: endpoint.url,
    types: endpoint.types && endpoint.types.join(', '),
    description: endpoint.description,
    status: endpoint.status,
    disabledReason: endpoint.disabledReason,
    failingSince: endpoint.failingSince,
    previousSecretExpiresAt: endpoint.previousSecretUntil,
    createdAt: endpoint.createdAt,
  };
}

/** A table has no room for the rest. */
function line(endpoint: WebhookEndpoint): Record<string, string | null> {
  const { id, url, status, failingSince, types } = shown(endpoint);
  return { id, url, status, failingSince, types: types ?? 'all' } as Record<string, string | null>;
}

function typesOf(text: string): readonly EventType[] {
  const names = text.split(',').map((name) => name.trim());
  const types = names.map((name) => EVENT_TYPES.find((type) => type === name));
  const unknown = names[types.indexOf(undefined)];
  if (unknown !== undefined) {
    throw new InvalidArgumentError(`"${unknown}" is not one of ${EVENT_TYPES.join(', ')}.`);
  }
  return [...new Set(types as EventType[])];
}

function descriptionOf(text: string): string {
  if (/^[^\p{C}]{0,200}$/u.test(text)) return text;
  throw new InvalidArgumentError('It must be printable text of at most 200 characters.');
}

function secretOverlapOf(text: string): number {
  const seconds = overlapOf(text);
  if (seconds <= SECRET_OVERLAP_SECONDS_MAX) return seconds;
  throw new InvalidArgumentError('It must be at most 7 days.');
}
