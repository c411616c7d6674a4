/** The options and arguments that the commands about budgets share. */
import { InvalidArgumentError, type Command } from 'commander';
import { WINDOW_UNITS, type WindowUnit } from '../domain/budget.ts';
import { DAY_MS } from '../domain/durations.ts';
import { uuidOf } from '../domain/ids.ts';
import { parseTime } from '../domain/iso-time.ts';
import type { Micros } from '../domain/money.ts';
import { NAME_MAX, TOOL_MAX } from '../schemas/budgets.ts';
import type { BudgetSettings } from '../store/budgets/change-budgets.ts';
import { findPlaceOfBudget, type Place } from '../store/budgets/find-tree.ts';
import type { Connection } from '../store/database.ts';
import type { Common } from './common-options.ts';
import { parseDollars } from './dollars.ts';
import { CommandError } from './database-command.ts';
import { printableText } from './printable-text.ts';

export const nameOf = printableText(NAME_MAX);
const toolOf = printableText(TOOL_MAX);

/** What the options set; `none` removes a limit. */
export interface SettingOptions extends Common {
  readonly name?: string;
  readonly limit?: Micros | 'none';
  readonly window?: { readonly unit: WindowUnit; readonly limitMicros: Micros } | 'none';
  readonly maxPerCall?: Micros | 'none';
  readonly tools?: readonly string[] | 'none';
  readonly developers?: readonly string[] | 'none';
  readonly approveDevelopers?: boolean;
  readonly mayDelegate?: boolean;
  readonly allowLeases?: boolean;
  readonly maxLease?: Micros | 'none';
  readonly expiresAt?: string;
}

export const settings = (command: Command) =>
  command
    .option('--name <name>', 'its name', nameOf)
    .option('--limit <dollars>', 'total dollars, or none', orNone(parseDollars))
    .option(
      '--window <unit:dollars>',
      `a limit in dollars for each ${WINDOW_UNITS.join(', ')}, such as day:5, or none`,
      orNone(windowOf),
    )
    .option(
      '--max-per-call <dollars>',
      'maximum price of one call in dollars, or none',
      orNone(parseDollars),
    )
    .option(
      '--tools <names>',
      'allow only these tools, separated by commas, or none',
      orNone((text) => listOf(text).map(toolOf)),
    )
    .option(
      '--developers <ids>',
      'allow only these developers (dev_…), separated by commas, or none',
      orNone(developersOf),
    )
    .option('--approve-developers', 'refuse each developer until the owner has approved it')
    .option('--no-approve-developers', 'let developers charge it without an approval')
    .option('--may-delegate', 'let its keys create budgets and keys below it')
    .option('--no-may-delegate', 'do not let its keys create budgets and keys below it')
    .option('--allow-leases', 'let developers lease parts of it')
    .option('--no-allow-leases', 'do not let developers lease parts of it')
    .option(
      '--max-lease <dollars>',
      'maximum that one lease may reserve in dollars, or none',
      orNone(parseDollars),
    )
    .option('--expires-at <time>', 'when it stops working, in ISO 8601, or none', orNone(timeOf));

/** The account and the number of the budget with this id. */
export async function getPlace(connection: Connection, id: string): Promise<Place> {
  const place = await findPlaceOfBudget(connection, uuidOfBudget(id));
  if (!place) throw noSuchBudget(id);
  return place;
}

export function uuidOfBudget(id: string): string {
  const uuid = uuidOf('budget', id);
  if (uuid === undefined) throw noSuchBudget(id);
  return uuid;
}

function noSuchBudget(id: string): CommandError {
  return new CommandError(`Budget ${id} not found. Run \`farebox budget list\` to see budget ids.`);
}

export function changesIn(options: Omit<SettingOptions, keyof Common>): Partial<BudgetSettings> {
  const { name, limit, window, maxPerCall, tools, developers, mayDelegate, expiresAt } = options;
  const { approveDevelopers, allowLeases, maxLease } = options;
  return {
    ...(name !== undefined && { name }),
    ...(limit !== undefined && { limitMicros: nullIfNone(limit) }),
    ...(window !== undefined && { window: nullIfNone(window) }),
    ...(maxPerCall !== undefined && { maxPerCallMicros: nullIfNone(maxPerCall) }),
    ...(tools !== undefined && { tools: nullIfNone(tools) }),
    ...(developers !== undefined && { developers: nullIfNone(developers) }),
    ...(approveDevelopers !== undefined && { approveDevelopers }),
    ...(mayDelegate !== undefined && { mayDelegate }),
    ...(allowLeases !== undefined && { allowLeases }),
    ...(maxLease !== undefined && { maxLeaseMicros: nullIfNone(maxLease) }),
    ...(expiresAt !== undefined && { expiresAt: nullIfNone(expiresAt) }),
  };
}

/** The text `none` removes what the option sets. Commander turns a null into an empty text. */
export function orNone<T>(parse: (text: string) => T): (text: string) => T | 'none' {
  return (text) => (text === 'none' ? text : parse(text));
}

export function nullIfNone<T>(value: T | 'none'): T | null {
  return value === 'none' ? null : value;
}

function windowOf(text: string) {
  const [unit, ...dollars] = text.split(':');
  const known = WINDOW_UNITS.find((each) => each === unit);
  if (known) return { unit: known, limitMicros: parseDollars(dollars.join(':')) };
  throw new InvalidArgumentError(
    `It must be one of ${WINDOW_UNITS.join(', ')}, a colon and an amount, such as day:5.`,
  );
}

function listOf(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.every((name) => name !== '')) return names;
  throw new InvalidArgumentError('It must be names separated by commas.');
}

function developersOf(text: string): readonly string[] {
  return listOf(text).map((id) => {
    const uuid = uuidOf('developer', id);
    if (uuid === undefined) throw new InvalidArgumentError(`${id} is not the id of a developer.`);
    return uuid;
  });
}

export function timeOf(text: string): string {
  const timeMs = parseTime(text);
  if (timeMs > Date.now()) return new Date(timeMs).toISOString();
  throw new InvalidArgumentError(
    'It must be a time in the future, in ISO 8601 with its zone, such as 2030-01-31T12:00:00Z.',
  );
}

export function dayOf(text: string): number {
  const timeMs = parseTime(text);
  if (timeMs % DAY_MS === 0) return timeMs;
  throw new InvalidArgumentError('It must be a day, as YYYY-MM-DD.');
}
