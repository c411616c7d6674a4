/** `farebox key …`: manages the keys of an account. A key is shown once, when it is created. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { KeyKind } from '../domain/api-keys.ts';
import { uuidOf, wireId } from '../domain/ids.ts';
import { modeOf } from '../domain/mode.ts';
import type { LedgerConfig } from '../config.ts';
import { createKey } from '../store/accounts/accounts.ts';
import { expireKey, listKeys, revokeKey, type StoredKey } from '../store/accounts/api-keys.ts';
import { ensureTestAccount, type Holder } from '../store/accounts/test-accounts.ts';
import type { Connection } from '../store/database.ts';
import { dataDirOption } from './data-dir-option.ts';
import { CommandError, getAccount, ifLost, withDatabase } from './database-command.ts';
import { columns, jsonLines, print } from './output.ts';

const KINDS = ['consumer', 'developer', 'legacy'] as const;
const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;
const OVERLAP_SECONDS_MAX = 30 * SECONDS.d;

interface Common {
  readonly json: boolean;
  readonly dataDir: string;
}

export function register(key: Command): void {
  common(key.command('list <account>'))
    .description('list all keys of an account (email, acct_…, cns_… or dev_…)')
    .action(list);
  common(key.command('create <account>'))
    .description('create a key')
    .addOption(new Option('--kind <kind>', 'kind of key').choices(KINDS).makeOptionMandatory())
    .option('--test', 'a test key, which spends play money', false)
    .action(create);
  common(key.command('roll <key>'))
    .description('replace a key (key_…) with a new one')
    .option(
      '--overlap <time>',
      'how long the old key keeps working: 0, 90s, 15m, 24h, 7d',
      overlapOf,
      0,
    )
    .action(roll);
  common(key.command('revoke <key>')).description('revoke a key immediately').action(revoke);
}

const common = (command: Command) =>
  command.option('--json', 'print JSON', false).addOption(dataDirOption());

async function list(who: string, { json, dataDir }: Common): Promise<void> {
  const keys = await withDatabase(dataDir, async (database) =>
    listKeys(database, (await getAccount(database, who)).id),
  );
  const listed = keys.map(shown);
  process.stdout.write(json ? jsonLines(listed) : columns(listed));
}

async function create(
  who: string,
  { kind, test, json, dataDir }: Common & { kind: KeyKind; test: boolean },
): Promise<void> {
  if (test && kind === 'legacy') throw new CommandError('There are no legacy test keys.');
  await withDatabase(dataDir, async (database, config) => {
    const { id, ledger } = await getAccount(database, who);
    const owner = test
      ? await ensureTestAccount(database, id, config.ledgerCount)
      : { accountId: id, ledger };
    print(await makeKey(database, config, kind, owner), json);
  }).catch(ifLost(lookFor(`key list ${who}`)));
}

async function roll(
  id: string,
  { overlap, json, dataDir }: Common & { overlap: number },
): Promise<void> {
  const uuid = uuidOfKey(id);
  const made = await withDatabase(dataDir, (database, config) =>
    database.transaction(async (tx) => {
      const old =
        overlap === 0
          ? await revokeKey(tx, { id: uuid })
          : await expireKey(tx, { id: uuid }, overlap);
      if (!old) throw noSuchKey(id);
      return makeKey(tx, config, old.kind, old, old.name);
    }),
  ).catch(ifLost(ifRolled(overlap, 'key list', 'key create')));
  // After the COMMIT: a key that was rolled back never works.
  print(made, json);
}

async function revoke(id: string, { json, dataDir }: Common): Promise<void> {
  const key = await withDatabase(dataDir, (database) =>
    revokeKey(database, { id: uuidOfKey(id) }),
  ).catch(ifLost(IF_REVOKED));
  if (!key) throw noSuchKey(id);
  print(shown(key), json);
}

async function makeKey(
  connection: Connection,
  config: LedgerConfig,
  kind: KeyKind,
  owner: Pick<Holder, 'accountId' | 'ledger'>,
  name: string | null = null,
): Promise<Record<string, string>> {
  const { id, key } = await createKey(connection, config.keyPrefix, kind, owner, name);
  return { id: wireId('key', id), kind, mode: modeOf(owner), key };
}

function shown(key: StoredKey): Record<string, string | null> {
  return {
    id: wireId('key', key.id),
    kind: key.kind,
    mode: modeOf(key),
    name: key.name,
    lastFour: key.lastFour,
    createdAt: key.createdAt,
    expiresAt: key.expiresAt,
    revokedAt: key.revokedAt,
    lastUsedAt: key.lastUsedAt,
  };
}

function uuidOfKey(id: string): string {
  const uuid = uuidOf('key', id);
  if (uuid === undefined) throw noSuchKey(id);
  return uuid;
}

function noSuchKey(id: string): CommandError {
  return new CommandError(`No active key ${id}. Run \`farebox key list\` to see key ids.`);
}

/** What to do when it is unknown whether a key was made; also for spend keys. */
export function lookFor(command: string): string {
  return `Look for it in \`farebox ${command}\`, and revoke it if it is there: it was not shown.`;
}

/** `list` and `create` are commands. */
export function ifRolled(overlapSeconds: number, list: string, create: string): string {
  return overlapSeconds > 0
    ? lookFor(list)
    : `Repeat the command. If it finds no active key, the key was replaced: create another with \`farebox ${create}\`.`;
}

export const IF_REVOKED = 'Repeat the command. If it finds no active key, the key was revoked.';

export function overlapOf(text: string): number {
  const [, number, unit] = /^(\d{1,6})([smhd]?)$/.exec(text) ?? [];
  const seconds = Number(number) * SECONDS[(unit || 's') as keyof typeof SECONDS];
  if (number !== undefined && seconds <= OVERLAP_SECONDS_MAX) return seconds;
  throw new InvalidArgumentError(
    'It must be a duration such as 90s, 15m, 24h or 7d, at most 30 days.',
  );
}
