/** `farebox budget key …`: the spend keys of a budget. A key is shown once, when it is created. */
import type { Command } from 'commander';
import { wireId } from '../domain/ids.ts';
import { modeOf } from '../domain/mode.ts';
import { newKey, storedOf } from '../store/accounts/api-keys.ts';
import { findPlaceOfKey, type Place } from '../store/budgets/find-tree.ts';
import { releaseOpenHolds } from '../store/budgets/open-holds.ts';
import {
  listSpendKeys,
  makeSpendKey,
  revokeSpendKey,
  rollSpendKey,
  type MadeSpendKey,
  type SpendKey,
} from '../store/budgets/spend-keys.ts';
import type { Database } from '../store/database.ts';
import { getPlace, nameOf, timeOf } from './budget-arguments.ts';
import { common, type Common } from './common-options.ts';
import { CommandError, ifLost, withDatabase } from './database-command.ts';
import { columns, jsonLines, print } from './output.ts';
import {
  IF_REVOKED,
  ifRolled,
  lookFor,
  noSuchKey,
  overlapOption,
  uuidOfKey,
} from './key-arguments.ts';

/** Shows the ids that the others take. */
const LIST = 'budget key list';
const PAGE = 1_000;

export function registerBudgetKeys(key: Command): void {
  common(key.command('list <budget>'))
    .description('list the spend keys of a budget (bdg_…), including those that have ended')
    .action(list);
  common(key.command('create <budget>'))
    .description('create a spend key')
    .option('--name <name>', 'its name', nameOf)
    .option('--expires-at <time>', 'when it stops working, in ISO 8601', timeOf)
    .action(create);
  common(key.command('roll <key>'))
    .description('replace a spend key (key_…) with a new one')
    .addOption(overlapOption())
    .action(roll);
  common(key.command('revoke <key>'))
    .description('revoke a spend key immediately')
    .option('--release-holds', 'release what its open holds reserve', false)
    .action(revoke);
}

async function list(id: string, { json, dataDir }: Common): Promise<void> {
  await withDatabase(dataDir, async (database) => {
    const place = await getPlace(database, id);
    for (let beforeId: string | undefined; ;) {
      const page = { limit: PAGE, beforeId };
      const keys = await listSpendKeys(database, place, place.number, page);
      const rows = keys.map(shown);
      process.stdout.write(json ? jsonLines(rows) : columns(rows));
      if (keys.length < PAGE) return;
      beforeId = keys.at(-1)?.id;
    }
  });
}

interface CreateOptions extends Common {
  readonly name?: string;
  readonly expiresAt?: string;
}

async function create(id: string, { json, dataDir, ...options }: CreateOptions): Promise<void> {
  const { name = null, expiresAt = null } = options;
  await withDatabase(dataDir, async (database, { keyPrefix }) => {
    const place = await getPlace(database, id);
    const { key, stored } = freshKey(keyPrefix, place);
    const made = await makeSpendKey(database, place, place.number, { ...stored, name, expiresAt });
    print(shownOnce(made, key), json);
  }).catch(ifLost(lookFor(`budget key list ${id}`)));
}

async function roll(
  id: string,
  { overlap, json, dataDir }: Common & { readonly overlap: number },
): Promise<void> {
  await withDatabase(dataDir, async (database, { keyPrefix }) => {
    const place = await getPlaceOfKey(database, id);
    const { key, stored } = freshKey(keyPrefix, place);
    const made = await rollSpendKey(
      database,
      { ...place, root: null },
      uuidOfKey(id, LIST),
      overlap,
      stored,
    );
    if (made.kind === 'unknown_key') throw noSuchKey(id, LIST);
    print(shownOnce(made, key), json);
  }).catch(ifLost(ifRolled(overlap, LIST, 'budget key create')));
}

async function revoke(
  id: string,
  { releaseHolds, json, dataDir }: Common & { readonly releaseHolds: boolean },
): Promise<void> {
  await withDatabase(dataDir, async (database) => {
    const place = await getPlaceOfKey(database, id);
    const view = { ...place, root: null };
    const key = await revokeSpendKey(database, view, uuidOfKey(id, LIST), {
      endsHolds: releaseHolds,
    });
    if (!key) throw noSuchKey(id, LIST);
    if (releaseHolds) await releaseOpenHolds(database, place, { keyId: key.id });
    print(shown(key), json);
  }).catch(ifLost(IF_REVOKED));
}

function freshKey(prefix: string, place: Place) {
  const key = newKey(prefix, 'consumer', modeOf(place));
  return { key, stored: { ...storedOf(key), accountId: place.accountId } };
}

function shownOnce(made: MadeSpendKey, key: string) {
  if (made.kind === 'made') {
    const { id, budget, name } = made;
    return { id: wireId('key', id), budgetId: wireId('budget', budget.id), name, key };
  }
  throw new CommandError(
    made.kind === 'closed'
      ? 'The budget is closed or expired, or one above it is.'
      : 'The account already has the maximum number of spend keys.',
  );
}

function shown(key: SpendKey): Record<string, string | null> {
  return {
    id: wireId('key', key.id),
    name: key.name,
    lastFour: key.lastFour,
    createdAt: key.createdAt,
    expiresAt: key.expiresAt,
    revokedAt: key.revokedAt,
    lastUsedAt: key.lastUsedAt,
  };
}

async function getPlaceOfKey(database: Database, id: string): Promise<Place> {
  const place = await findPlaceOfKey(database, uuidOfKey(id, LIST));
  if (!place) throw noSuchKey(id, LIST);
  return place;
}
