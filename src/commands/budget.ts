/** `farebox budget …`: the budgets of an account as a tree, their limits and what was spent of them. */
import { Option, type Command } from 'commander';
import { USAGE_GROUPS, type UsageGroup } from '../domain/budget.ts';
import { wireId } from '../domain/ids.ts';
import { dollarsOf, type Micros } from '../domain/money.ts';
import type { Budget } from '../store/budgets/budget.ts';
import { getBudgetOfNumber, listBudgets } from '../store/budgets/budgets.ts';
import {
  changeBudget,
  closeBudget,
  makeBudget,
  NO_LIMITS,
} from '../store/budgets/change-budgets.ts';
import { closeAllBudgets } from '../store/budgets/close-all-budgets.ts';
import { releaseOpenHolds } from '../store/budgets/open-holds.ts';
import { reopenBudget } from '../store/budgets/reopen-budget.ts';
import { readBudgetUsage } from '../store/budgets/usage.ts';
import {
  changesIn,
  dayOf,
  getPlace,
  settings,
  uuidOfBudget,
  type SettingOptions,
} from './budget-arguments.ts';
import { common, type Common } from './common-options.ts';
import { registerBudgetKeys } from './budget-key.ts';
import { CommandError, getAccount, ifLost, SAME_AGAIN, withDatabase } from './database-command.ts';
import { columns, jsonLines, print } from './output.ts';

const PAGE = 1_000;

export function register(budget: Command): void {
  common(budget.command('list <account>'))
    .description('list the budgets of an account as a tree (email, acct_…, cns_… or dev_…)')
    .action(list);
  settings(common(budget.command('create <account>')))
    .description('create a budget')
    .option('--parent <budget>', 'the budget (bdg_…) that it is part of; default: the account')
    .action(create);
  settings(common(budget.command('set <budget>')))
    .description('change a budget (bdg_…), for example raise a limit; --limit none removes it')
    .action(set);
  common(budget.command('close <budget>'))
    .description('close a budget, all budgets below it and all their keys permanently')
    .option('--release-holds', 'release what open holds by these keys reserve', false)
    .action(close);
  common(budget.command('reopen <budget>'))
    .description(
      'reopen the closed budget of a single developer, which can then charge consumer keys of the account again',
    )
    .action(reopen);
  common(budget.command('close-all <account>'))
    .description(
      'end all spend keys of an account, and close its budgets except those of single developers, permanently',
    )
    .option('--release-holds', 'release what open holds by these keys reserve', false)
    .action(closeAll);
  common(budget.command('usage <budget>'))
    .description('show what the keys of a budget, and of all budgets below it, spent')
    .addOption(
      new Option('--by <what>', 'how to group the spending').choices(USAGE_GROUPS).default('tool'),
    )
    .option('--from <day>', 'from this UTC day on, as YYYY-MM-DD', dayOf)
    .option('--to <day>', 'up to, but not including, this UTC day', dayOf)
    .action(usage);
  registerBudgetKeys(
    budget.command('key').description('list, create, roll and revoke the spend keys of a budget'),
  );
}

async function list(who: string, { json, dataDir }: Common): Promise<void> {
  await withDatabase(dataDir, async (database) => {
    const { ledger, consumerId } = await getAccount(database, who);
    const view = { ledger, consumerId, root: null };
    const found: Budget[] = [];
    for (let beforeId: string | undefined; ; beforeId = found.at(-1)?.id) {
      const page = await listBudgets(database, view, undefined, { limit: PAGE, beforeId });
      found.push(...page);
      if (page.length < PAGE && page.at(-1)?.hasNext !== true) break;
    }
    const tree = found.toSorted((a, b) => comparePaths(a.path, b.path));
    process.stdout.write(json ? jsonLines(tree.map(shown)) : columns(tree.map(line)));
  });
}

async function create(
  who: string,
  { parent, json, dataDir, ...options }: SettingOptions & { readonly parent?: string },
): Promise<void> {
  const { name } = options;
  if (name === undefined) throw new CommandError('A budget needs a --name.');
  await withDatabase(dataDir, async (database) => {
    const { ledger, consumerId } = await getAccount(database, who);
    const view = { ledger, consumerId, root: null };
    const parentId = parent === undefined ? null : uuidOfBudget(parent);
    const made = await makeBudget(database, view, parentId, {
      ...NO_LIMITS,
      ...changesIn(options),
      name,
    });
    if (made.kind !== 'made') throw new CommandError(REFUSALS[made.kind]);
    print(shown(made.budget), json);
  }).catch(ifLost(`Look for it in \`farebox budget list ${who}\` before you repeat the command.`));
}

async function set(id: string, { json, dataDir, ...options }: SettingOptions): Promise<void> {
  await withDatabase(dataDir, async (database) => {
    const changes = changesIn(options);
    if (Object.keys(changes).length === 0)
      throw new CommandError('No change was given. See `farebox budget set --help`.');
    const view = { ...(await getPlace(database, id)), root: null };
    const result = await changeBudget(database, view, uuidOfBudget(id), changes);
    if (result.kind !== 'changed') throw new CommandError(REFUSALS[result.kind]);
    print(shown(result.budget), json);
  }).catch(ifLost(SAME_AGAIN));
}

async function close(
  id: string,
  { releaseHolds, json, dataDir }: Common & { readonly releaseHolds: boolean },
): Promise<void> {
  await withDatabase(dataDir, async (database) => {
    const place = await getPlace(database, id);
    const view = { ...place, root: null };
    await closeBudget(database, view, uuidOfBudget(id));
    if (releaseHolds) await releaseOpenHolds(database, place, { number: place.number });
    print(shown(await getBudgetOfNumber(database, place, place.number)), json);
  }).catch(ifLost('Repeat the command: a budget that is closed stays closed.'));
}

async function reopen(id: string, { json, dataDir }: Common): Promise<void> {
  await withDatabase(dataDir, async (database) => {
    const view = { ...(await getPlace(database, id)), root: null };
    const result = await reopenBudget(database, view, uuidOfBudget(id));
    if (result.kind !== 'changed') throw new CommandError(REFUSALS[result.kind]);
    print(shown(result.budget), json);
  }).catch(ifLost(SAME_AGAIN));
}

async function closeAll(
  who: string,
  { releaseHolds, json, dataDir }: Common & { readonly releaseHolds: boolean },
): Promise<void> {
  await withDatabase(dataDir, async (database) => {
    const account = await getAccount(database, who);
    const closed = await closeAllBudgets(database, account);
    if (releaseHolds) await releaseOpenHolds(database, account, 'all_keys');
    print({ closed }, json);
  }).catch(ifLost('Repeat the command: a budget that is closed stays closed.'));
}

interface UsageOptions extends Common {
  readonly by: UsageGroup;
  readonly from?: number;
  readonly to?: number;
}

async function usage(id: string, { by, from, to, json, dataDir }: UsageOptions): Promise<void> {
  await withDatabase(dataDir, async (database) => {
    const node = { ...(await getPlace(database, id)), root: null };
    const range = { fromMs: from, toMs: to };
    for (let after: string | undefined, isFirst = true; ; isFirst = false) {
      const page = { limit: PAGE, after };
      const { total, groups } = await readBudgetUsage(database, node, by, range, page);
      const rows = groups.map(({ mark, name, spentMicros, charges }) => ({
        [by]: by === 'key' || by === 'developer' ? wireId(by, mark) : mark,
        ...(by === 'key' && { name }),
        charges,
        spent: dollarsOf(spentMicros),
      }));
      if (json) process.stdout.write(jsonLines(rows));
      else {
        const { charges, spentMicros } = total;
        const sum = {
          [by]: 'total',
          ...(by === 'key' && { name: null }),
          charges,
          spent: dollarsOf(spentMicros),
        };
        process.stdout.write(columns(isFirst ? [sum, ...rows] : rows));
      }
      after = groups.at(-1)?.mark;
      if (groups.length < PAGE) return;
    }
  });
}

const REFUSALS = {
  unknown_parent: 'The parent is not a budget of this account.',
  unknown_budget: 'The budget was not found.',
  closed: 'The budget is closed or expired, or one above it is.',
  not_reopenable: 'Only a budget that limits a single developer to consumer keys can be reopened.',
  too_deep: 'The tree of budgets is already at its maximum depth.',
  too_many: 'The account already has the maximum number of budgets.',
  known: 'The budget already exists.',
  key_reused: 'The budget already exists.',
} as const;

function shown(budget: Budget): Record<string, string | number | boolean | null> {
  const { id, parentId, name, status, limitMicros, usedMicros, window, remainingMicros } = budget;
  return {
    id: wireId('budget', id),
    parentId: parentId === null ? null : wireId('budget', parentId),
    name,
    status,
    limit: dollarsOrNull(limitMicros),
    used: dollarsOf(usedMicros),
    ...ofWindow(window),
    remaining: dollarsOrNull(remainingMicros),
    maxPerCall: dollarsOrNull(budget.maxPerCallMicros),
    tools: budget.tools && budget.tools.join(', '),
    developers:
      budget.developers && budget.developers.map((dev) => wireId('developer', dev)).join(', '),
    approveDevelopers: budget.approveDevelopers,
    mayDelegate: budget.mayDelegate,
    allowLeases: budget.allowLeases,
    maxLease: dollarsOrNull(budget.maxLeaseMicros),
    expiresAt: budget.expiresAt,
  };
}

/** A line of the tree for people, indented below its parent. */
function line(budget: Budget): Record<string, string | number | null> {
  const { path, name, window } = budget;
  return {
    name: '  '.repeat(path.length - 1) + name,
    id: wireId('budget', budget.id),
    status: budget.status,
    used: dollarsOf(budget.usedMicros),
    limit: dollarsOrNull(budget.limitMicros),
    ...ofWindow(window),
    remaining: dollarsOrNull(budget.remainingMicros),
  };
}

function ofWindow(window: Budget['window']) {
  return {
    window: window && window.unit,
    windowLimit: window && dollarsOf(window.limitMicros),
    windowUsed: window && dollarsOf(window.usedMicros),
  };
}

/** A parent comes before its children, and siblings oldest first. */
function comparePaths(a: readonly number[], b: readonly number[]): number {
  for (const [depth, number] of a.entries()) {
    const other = b[depth];
    if (other === undefined) return 1;
    if (number !== other) return number - other;
  }
  return a.length - b.length;
}

function dollarsOrNull(micros: Micros | null): number | null {
  return micros === null ? null : dollarsOf(micros);
}
