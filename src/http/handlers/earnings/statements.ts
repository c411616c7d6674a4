/** Monthly statements for the key's role. A month is a UTC month; one without entries is empty. */
import { wireId } from '../../../domain/ids.ts';
import { dollarsOf } from '../../../domain/money.ts';
import type {
  ConsumerStatementReply,
  DeveloperStatementReply,
  StatementReply,
} from '../../../schemas/statements.ts';
import { LATEST_BEGINNING_MS, type Month } from '../../../store/charges/closed-charges.ts';
import {
  readConsumerStatement,
  readDeveloperStatement,
  type ConsumerStatement,
  type DeveloperStatement,
} from '../../../store/earnings/statements.ts';
import { readClock } from '../../../store/database.ts';
import { readOldestWrite } from '../../../store/writers.ts';
import { takeTurn, takeTurnInSteps } from '../../../store/accounts/turns.ts';
import type { Api } from '../../services.ts';
import { pagesOfRows, type Cell, type Export } from '../../csv.ts';
import type { Reply, Request } from '../../endpoint.ts';
import { invalidField } from '../../invalid-field.ts';

export async function getStatement(
  api: Api,
  { caller, params }: Request,
): Promise<Reply<StatementReply>> {
  // Before the statement is read: it then has everything of a complete month. By the clock of the ids of charges.
  const nowMs = await readClock(api.database);
  const month = monthOf(params['month'] ?? '', nowMs);
  const complete = isComplete(month, await readOldestWrite(api.database));
  const statement = await api.shares.scans.run(caller, () => readStatement(api, caller, month));
  const head = {
    month: nameOf(month),
    from: isoOf(month.fromMs),
    to: isoOf(month.toMs),
    complete,
  };
  const body =
    'movements' in statement
      ? { consumerId: wireId('consumer', caller.consumerId), ...consumerView(statement) }
      : { developerId: wireId('developer', caller.developerId), ...developerView(statement) };
  return { status: 200, body: { ...head, ...body } };
}

/**
 * One row for each entry. The amounts of all rows but the last add up to the last. Tax is beside them. Each row says
 * whether the statement is complete, because a file may be read later, and under another name.
 */
export function exportStatement(api: Api, { caller, params }: Request): Export {
  const month = monthOf(params['month'] ?? '', api.clock.nowMs());
  return {
    name: `statement-${nameOf(month)}`,
    header: ['date', 'entry', 'tool', 'topUpId', 'reason', 'count', 'amount', 'tax', 'complete'],
    pages: (async function* () {
      // Before the statement is read, as in `getStatement`.
      const complete = isComplete(month, await readOldestWrite(api.database));
      const statement = await readStatement(api, caller, month);
      const rows =
        'movements' in statement ? consumerRows(month, statement) : developerRows(month, statement);
      yield* pagesOfRows(rows.map((row) => [...row, String(complete)]));
    })(),
  };
}

/** For the role of the key. Closed charges are counted before, because a month may have millions. */
async function readStatement(
  { database, closedCharges }: Api,
  caller: Request['caller'],
  month: Month,
): Promise<ConsumerStatement | DeveloperStatement> {
  const { accountId, kind } = caller;
  if (kind !== 'consumer') {
    return takeTurn(database, accountId, (tx) => readDeveloperStatement(tx, caller, month));
  }
  const closed = await takeTurnInSteps(database, accountId, (connection) =>
    closedCharges.countClosed(connection, caller, month),
  );
  return takeTurn(database, accountId, (tx) =>
    readConsumerStatement(tx, closedCharges, caller, month, closed),
  );
}

/** From 1970, when timestamps in ids begin, to the current month. */
function monthOf(text: string, nowMs: number): Month {
  const [, year = '', month = ''] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  const fromMs = Date.UTC(Number(year), Number(month) - 1);
  if (year < '1970' || fromMs > nowMs) {
    const thisMonth = isoOf(nowMs).slice(0, 7);
    throw invalidField(
      'month',
      `month must be the current month, ${thisMonth}, or an earlier one in the same format.`,
    );
  }
  return { fromMs, toMs: Date.UTC(Number(year), Number(month)) };
}

/**
 * Whether the month is closed: nothing can be added to it. By the time at which the oldest transaction that
 * has not ended began.
 */
export function isComplete({ toMs }: Month, beganMs: number): boolean {
  return beganMs >= toMs + LATEST_BEGINNING_MS;
}

const isoOf = (timeMs: number): string => new Date(timeMs).toISOString();
const nameOf = ({ fromMs }: Month): string => isoOf(fromMs).slice(0, 7);
const dayOf = (timeMs: number): string => isoOf(timeMs).slice(0, 10);
const topUpIdOf = (id: string | null): string | null => id && wireId('topUp', id);

type ConsumerView = Pick<
  ConsumerStatementReply,
  'openingBalance' | 'movements' | 'charges' | 'closingBalance'
>;
type DeveloperView = Pick<
  DeveloperStatementReply,
  'openingEarnings' | 'earned' | 'refunds' | 'closingEarnings'
>;

function consumerView({
  openingMicros,
  movements,
  charges,
  closingMicros,
}: ConsumerStatement): ConsumerView {
  return {
    openingBalance: dollarsOf(openingMicros),
    movements: movements.map(({ kind, amountMicros, taxMicros, topUpId, reason, createdAt }) => ({
      kind,
      amount: dollarsOf(amountMicros),
      ...(taxMicros !== 0 && { tax: dollarsOf(taxMicros) }),
      topUpId: topUpIdOf(topUpId),
      reason,
      createdAt,
    })),
    charges: charges.map(({ tool, charges: count, amountMicros }) => ({
      tool,
      charges: count,
      amount: dollarsOf(amountMicros),
    })),
    closingBalance: dollarsOf(closingMicros),
  };
}

function developerView({
  openingMicros,
  earned,
  refunds,
  closingMicros,
}: DeveloperStatement): DeveloperView {
  return {
    openingEarnings: dollarsOf(openingMicros),
    earned: earned.map(({ beginsMs, tool, charges, earningsMicros }) => ({
      day: dayOf(beginsMs),
      tool,
      charges,
      amount: dollarsOf(earningsMicros),
    })),
    refunds: refunds.map(({ day, tool, refunds: count, amountMicros }) => ({
      day: day.slice(0, 10),
      tool,
      refunds: count,
      amount: dollarsOf(amountMicros),
    })),
    closingEarnings: dollarsOf(closingMicros),
  };
}

function consumerRows(month: Month, statement: ConsumerStatement): Cell[][] {
  const { openingMicros, movements, charges, closingMicros } = statement;
  return [
    [isoOf(month.fromMs), 'opening_balance', '', '', '', '', BigInt(openingMicros), ''],
    ...movements.map(({ kind, amountMicros, taxMicros, topUpId, reason, createdAt }): Cell[] => [
      createdAt,
      kind,
      '',
      topUpIdOf(topUpId) ?? '',
      reason ?? '',
      '',
      BigInt(amountMicros),
      taxMicros === 0 ? '' : BigInt(taxMicros),
    ]),
    ...charges.map(({ tool, charges: count, amountMicros }): Cell[] => [
      nameOf(month),
      'charges',
      tool,
      '',
      '',
      count,
      -BigInt(amountMicros),
      '',
    ]),
    [isoOf(month.toMs), 'closing_balance', '', '', '', '', BigInt(closingMicros), ''],
  ];
}

function developerRows(month: Month, statement: DeveloperStatement): Cell[][] {
  const { openingMicros, earned, refunds, closingMicros } = statement;
  return [
    [isoOf(month.fromMs), 'opening_earnings', '', '', '', '', BigInt(openingMicros), ''],
    ...earned.map(({ beginsMs, tool, charges, earningsMicros }): Cell[] => [
      dayOf(beginsMs),
      'earned',
      tool,
      '',
      '',
      charges,
      BigInt(earningsMicros),
      '',
    ]),
    ...refunds.map(({ day, tool, refunds: count, amountMicros }): Cell[] => [
      day.slice(0, 10),
      'refunded',
      tool,
      '',
      '',
      count,
      -BigInt(amountMicros),
      '',
    ]),
    [isoOf(month.toMs), 'closing_earnings', '', '', '', '', BigInt(closingMicros), ''],
  ];
}
