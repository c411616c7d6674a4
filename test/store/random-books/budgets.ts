/** Trees of budgets with spend keys, the daily limit of each developer, and windows that turn. */
import { hash, randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { WINDOW_UNITS } from '../../../src/domain/budget.ts';
import { asMicros } from '../../../src/domain/money.ts';
import { changeAccountKeys } from '../../../src/store/accounts/account-keys.ts';
import {
  changeBudget,
  closeBudget,
  makeBudget,
  type BudgetSettings,
} from '../../../src/store/budgets/change-budgets.ts';
import { findDeveloperBudget } from '../../../src/store/budgets/developer-budgets.ts';
import {
  makeSpendKey,
  revokeSpendKey,
  rollSpendKey,
} from '../../../src/store/budgets/spend-keys.ts';
import { row, sql } from '../../../src/store/database.ts';
import { UNLIMITED } from '../../support/budget-settings.ts';
import type { Random } from '../../support/random.ts';
import type { Books, MadeNode, Owner } from './books.ts';

const DEPTH_MOST = 6;
const NODES_MOST = 25;
const NODES_LEAST = 4;
const KEYS_MOST = 40;
const KEYS_LEAST = 4;
/** Mostly, closed keys pay no longer. The memory of an API process may keep them for a second. */
const FORGOTTEN = 0.8;
/** Longer than any window, so that what is moved back by it lies before the current one. */
const LONG_AGO = sql.fragment`interval '40 days'`;

const numberRow = row(Type.Object({ number: Type.Integer() }));

export async function addNode(books: Books, owner: Owner, random: Random): Promise<void> {
  if (owner.nodes.length < NODES_MOST) await makeNode(books, owner, random);
}

/** With a key. */
async function makeNode(books: Books, owner: Owner, random: Random): Promise<void> {
  const parents = owner.nodes.filter(({ path }) => path.length < DEPTH_MOST);
  const parent = parents.length > 0 && random.chance(0.6) ? random.pick(parents) : null;
  const made = await makeBudget(books.database, owner.view, parent?.id ?? null, {
    ...UNLIMITED,
    allowLeases: true,
    limitMicros: random.chance(0.5) ? asMicros(random.between(0, 2_900_000)) : null,
    window: random.chance(0.6) ? windowOf(random, 900_000) : null,
    maxPerCallMicros: random.chance(0.3) ? asMicros(random.between(1, 60_000)) : null,
    approveDevelopers: random.chance(0.3),
  });
  books.count(`add node ${made.kind}`);
  if (made.kind !== 'made') return;
  const { id, number, path } = made.budget;
  const node = { id, number, path };
  owner.nodes = [...owner.nodes, node];
  await addKeyTo(books, owner, node);
}

function windowOf(random: Random, most: number) {
  return { unit: random.pick(WINDOW_UNITS), limitMicros: asMicros(random.between(0, most)) };
}

export async function addKey(books: Books, owner: Owner, random: Random): Promise<void> {
  if (owner.keys.length < KEYS_MOST) await addKeyTo(books, owner, random.pick(owner.nodes));
}

async function addKeyTo(books: Books, owner: Owner, node: MadeNode): Promise<void> {
  const key = { ...newKey(owner), name: null, expiresAt: null };
  const made = await makeSpendKey(books.database, owner.view, node.number, key);
  books.count(`add key ${made.kind}`);
  if (made.kind === 'made') await keep(books, owner, made.id, node.path);
}

const newKey = ({ accountId }: Owner) => ({
  hash: hash('sha256', randomUUID()),
  lastFour: 'test',
  accountId,
});

async function keep(
  { database }: Books,
  owner: Owner,
  id: string,
  path: readonly number[],
): Promise<void> {
  const number = await database.oneFirst(sql.type(numberRow)`
    select number from farebox.spend_keys where id = ${id}
  `);
  owner.keys = [...owner.keys, { id, spend: { number, path: [...path] } }];
}

/** Rolls or revokes one. */
export async function endKey(books: Books, owner: Owner, random: Random): Promise<void> {
  const keys = owner.keys.filter(({ id }) => id !== null);
  if (keys.length < KEYS_LEAST) return;
  const key = random.pick(keys);
  const { id, spend } = key;
  if (id === null || spend === null) return;
  if (random.chance(FORGOTTEN)) owner.keys = owner.keys.filter((other) => other !== key);
  if (random.chance(0.5)) {
    const overlapSeconds = random.pick([0, 60]);
    const rolled = await rollSpendKey(
      books.database,
      owner.view,
      id,
      overlapSeconds,
      newKey(owner),
    );
    books.count(`roll key ${rolled.kind}`);
    if (rolled.kind === 'made') await keep(books, owner, rolled.id, spend.path);
  } else {
    const endsHolds = random.chance(0.5);
    const revoked = await revokeSpendKey(books.database, owner.view, id, { endsHolds });
    books.count(`revoke key ${revoked ? 'done' : 'in vain'}`);
  }
}

export async function changeLimits(books: Books, owner: Owner, random: Random): Promise<void> {
  const { id } = random.pick(owner.nodes);
  const { kind } = await changeBudget(books.database, owner.view, id, changesOf(books, random));
  books.count(`change limits ${kind}`);
}

function changesOf({ developers }: Books, random: Random): Partial<BudgetSettings> {
  switch (random.between(0, 4)) {
    case 0:
      return { limitMicros: random.chance(0.3) ? null : asMicros(random.between(0, 900_000)) };
    case 1:
      return { window: random.chance(0.2) ? null : windowOf(random, 500_000) };
    case 2:
      return { maxPerCallMicros: random.chance(0.5) ? null : asMicros(random.between(1, 60_000)) };
    case 3:
      return {
        approveDevelopers: random.chance(0.5),
        approvedDevelopers: random.chance(0.5) ? [random.pick(developers).developerId] : [],
      };
    default:
      return { allowLeases: random.chance(0.7) };
  }
}

/** With all below it. Others take its place. */
export async function close(books: Books, owner: Owner, random: Random): Promise<void> {
  const { id, number } = random.pick(owner.nodes);
  const { kind } = await closeBudget(books.database, owner.view, id);
  books.count(`close ${kind}`);
  const left = () => owner.nodes.filter(({ path }) => !path.includes(number));
  do await makeNode(books, owner, random);
  while (left().length < NODES_LEAST);
  if (!random.chance(FORGOTTEN)) return;
  owner.nodes = left();
  owner.keys = owner.keys.filter(({ spend }) => !spend?.path.includes(number));
}

/** With a daily limit, the account's keys pay one of the developers through a budget of its own. */
export async function setDayLimit(books: Books, owner: Owner, random: Random): Promise<void> {
  const isClosed = random.chance(0.2);
  const { developerDayMicros } = await changeAccountKeys(books.database, owner.view, {
    developerDayMicros: random.chance(0.4) ? null : asMicros(random.between(0, 600_000)),
    ...(isClosed && { charge: random.pick(['open', 'closed']) }),
  });
  if (developerDayMicros === null) return;
  const { accountId, view } = owner;
  const developer = random.pick(books.developers);
  const asked = { ...view, accountId, ...developer, keyId: randomUUID() };
  const found = await findDeveloperBudget(books.database, asked);
  books.count(`day limit ${found.kind}`);
  if (found.kind !== 'found') return;
  const { number, path } = found.budget;
  owner.keys = [
    ...owner.keys.filter(({ spend }) => spend?.number !== number),
    { id: null, spend: { number, path: [...path] }, developer },
  ];
}

/** Between waves: what began in the windows of now began long ago. */
export async function turnWindows(books: Books, { view }: Owner): Promise<void> {
  const ofOwner = sql.fragment`ledger = ${view.ledger} and consumer_id = ${view.consumerId}`;
  await books.change(sql.fragment`
    with turned as (
      update farebox.budgets set window_began = window_began - ${LONG_AGO} where ${ofOwner}
    )
    update farebox.holds set placed_at = placed_at - ${LONG_AGO} where ${ofOwner}
  `);
  books.count('turn windows done');
}
