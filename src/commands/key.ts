/** `farebox key …`: manages the keys of an account. A key is shown once, when it is created. */
import { Option, type Command } from 'commander';
import type { KeyKind } from '../domain/api-keys.ts';
import { wireId } from '../domain/ids.ts';
import { modeOf } from '../domain/mode.ts';
import type { LedgerConfig } from '../config.ts';
import {
  createKey,
  expireKey,
  findKey,
  listKeys,
  revokeActiveKey,
  revokeKey,
  type StoredKey,
} from '../store/accounts/api-keys.ts';
import { ensureTestAccount, getHolder, type Holder } from '../store/accounts/test-accounts.ts';
import { releaseOpenHolds } from '../store/budgets/open-holds.ts';
import type { Connection } from '../store/database.ts';
import { common, type Common } from './common-options.ts';
import { CommandError, getAccount, ifLost, withDatabase } from './database-command.ts';
import {
  IF_REVOKED,
  ifRolled,
  lookFor,
  noSuchKey,
  overlapOption,
  uuidOfKey,
} from './key-arguments.ts';
import { columns, jsonLines, print } from './output.ts';

/** Shows the ids that the others take. */
const LIST = 'key list';
const KINDS = ['consumer', 'developer', 'legacy'] as const;

export function register(key: Command): void {
  common(key.command('list <account>'))
    .description('list all keys of an account (email, acct_…, cns_… or dev_…)')
    .action(list);
  common(key.command('create <account>'))
    .description('create a key')
    .addOption(
      new Option('--kind <kind>', 'kind of key; developer creates a secret key')
        .choices(KINDS)
        .makeOptionMandatory(),
    )
    .option('--test', 'a test key, which spends play money', false)
    .action(create);
  common(key.command('roll <key>'))
    .description('replace a key (key_…) with a new one')
    .addOption(overlapOption())
    .action(roll);
  common(key.command('revoke <key>'))
    .description('revoke a key immediately')
    .option(
      '--release-holds',
      'release what open holds by the consumer keys of its account reserve',
      false,
    )
    .action(revoke);
}

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
  const uuid = uuidOfKey(id, LIST);
  const made = await withDatabase(dataDir, (database, config) =>
    database.transaction(async (tx) => {
      const old =
        overlap === 0
          ? await revokeActiveKey(tx, { id: uuid })
          : await expireKey(tx, { id: uuid }, overlap);
      if (!old) throw noSuchKey(id, LIST);
      return makeKey(tx, config, old.kind, old, old.name);
    }),
  ).catch(ifLost(ifRolled(overlap, LIST, 'key create')));
  // After the COMMIT: a key that was rolled back never works.
  print(made, json);
}

async function revoke(
  id: string,
  { releaseHolds, json, dataDir }: Common & { readonly releaseHolds: boolean },
): Promise<void> {
  const which = { id: uuidOfKey(id, LIST) };
  const key = await withDatabase(dataDir, async (database) => {
    if (!releaseHolds) return revokeKey(database, which);
    const found = await findKey(database, which);
    if (!found) return null;
    if (found.kind !== 'consumer') {
      throw new CommandError('Only consumer keys and spend keys have holds to release.');
    }
    const revoked = await revokeKey(database, which);
    await releaseOpenHolds(database, await getHolder(database, found.accountId), 'account_keys');
    return revoked;
  }).catch(ifLost(IF_REVOKED));
  if (!key) throw noSuchKey(id, LIST);
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
