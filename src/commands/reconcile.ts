/**
 * `farebox reconcile`: compares the processor's books with ours now. Exits with 1 if they differ, with 2 if it could
 * not check. With --settle it writes instead, and exits as other commands do. After a restore, while nothing else runs,
 * it takes over what Stripe has and the ledger lost.
 */
import { WorkflowFailedError } from '@temporalio/client';
import { rootCause } from '@temporalio/common';
import { Option, type Command } from 'commander';
import { readStripeConfig } from '../config.ts';
import {
  DIFFERENCE_KINDS,
  differenceText,
  paymentsText,
  SETTLED_KINDS,
  type DifferenceKind,
} from '../domain/difference.ts';
import { uuidOf, wireId } from '../domain/ids.ts';
import { dollarsOf, formatDollarNumber } from '../domain/money.ts';
import { environmentOf } from '../embedded/environment.ts';
import { listDifferences, type Difference } from '../store/top-ups/reconciliation.ts';
import { settleDifference } from '../store/top-ups/settled-differences.ts';
import type { Database } from '../store/database.ts';
import { isRelayRunning } from '../store/outbox.ts';
import { getTopUp } from '../store/top-ups/top-ups.ts';
import { nothingYet, takeOverSince, type Progress } from '../stripe/after-restore.ts';
import { createStripe } from '../stripe/calls.ts';
import { reconcileNow } from '../temporal/reconcile-now.ts';
import type { Reconciliation } from '../../workflows/reconcile-top-ups.ts';
import { dataDirOption } from './data-dir-option.ts';
import { endProgress, inspect, showProgress } from './inspection.ts';
import { CommandError, ifLost, withDatabase } from './database-command.ts';
import { printableText } from './printable-text.ts';
import { withTemporal } from './temporal-command.ts';

const REASON_LENGTH_MAX = 500;
const reasonOf = printableText(REASON_LENGTH_MAX);

/** The first comparison of a large account takes minutes. */
const TIMEOUT_MS = 600_000;
/** No workflow repeats what --after-restore asks of Stripe. */
const RETRIES_MAX = 5;

interface ReconcileOptions {
  readonly json: boolean;
  readonly afterRestore: boolean;
  readonly settle?: string;
  readonly kind?: DifferenceKind;
  readonly reason?: string;
  readonly dataDir: string;
}

export function register(command: Command): void {
  command
    .option('--json', 'print JSON', false)
    .option(
      '--after-restore',
      'after a restore from a backup: bring the ledger up to date with Stripe; stop all workers and API processes first',
      false,
    )
    .addOption(
      new Option(
        '--settle <top-up>',
        'stop listing a difference of this top-up until its amounts change; needs a --reason',
      ).conflicts('afterRestore'),
    )
    .addOption(
      new Option('--kind <kind>', 'which of them to settle, if more than one differs').choices(
        DIFFERENCE_KINDS.filter((kind) => SETTLED_KINDS.has(kind)),
      ),
    )
    .option('--reason <text>', 'why nothing is left to do, for the audit log', (text) =>
      reasonOf(text.trim()),
    )
    .addOption(dataDirOption())
    .action((options: ReconcileOptions) => {
      refuseHalf(command, options);
      if (options.settle !== undefined) return settle(options.settle, options);
      return options.afterRestore ? reconcileAfterRestore(options) : reconcile(options);
    });
}

/** Without its other half, an option would be ignored, and an operator would read the result as that of a settlement. */
function refuseHalf(command: Command, { settle: topUp, kind, reason }: ReconcileOptions): void {
  const needs = (option: string, needed: string) =>
    command.error(`error: option '${option}' needs option '${needed}'`);
  if (topUp === undefined) {
    if (kind !== undefined) needs('--kind <kind>', '--settle <top-up>');
    if (reason !== undefined) needs('--reason <text>', '--settle <top-up>');
  } else if (reason === undefined) needs('--settle <top-up>', '--reason <text>');
}

async function settle(topUp: string, options: ReconcileOptions): Promise<void> {
  const { json, kind, reason = '', dataDir } = options;
  const topUpId = uuidOf('topUp', topUp);
  if (topUpId === undefined) throw new CommandError(`${topUp} is not the id of a top-up.`);
  const settled = await withDatabase(dataDir, async (database) => {
    const open = await listDifferences(database);
    const chosen = chosenOf(
      topUp,
      open.filter((each) => each.topUpId === topUpId && (kind === undefined || each.kind === kind)),
    );
    await settleDifference(database, chosen, reason);
    return chosen;
  }).catch(ifLost('Repeat the command. If nothing differs that is not settled, it was settled.'));
  const processor = dollarsOf(settled.processorMicros);
  const ledger = dollarsOf(settled.ledgerMicros);
  process.stdout.write(
    json
      ? `${JSON.stringify({ topUpId: topUp, settled: settled.kind, processor, ledger })}\n`
      : `Settled for ${topUp}: ${differenceText(settled.kind, processor, ledger)} (processor ${formatDollarNumber(processor)}, ` +
          `ledger ${formatDollarNumber(ledger)}).\n`,
  );
}

/** Returns the difference to settle. Throws if there are several: the operator may have seen only one of them. */
function chosenOf(topUp: string, differences: readonly Difference[]): Difference {
  const [chosen, ...more] = differences;
  if (chosen === undefined)
    throw new CommandError(`Nothing differs about ${topUp} that is not settled.`);
  if (more.length > 0) {
    const kinds = differences.map(({ kind }) => kind).join(', ');
    throw new CommandError(`More than one thing differs about ${topUp}: add --kind (${kinds}).`);
  }
  if (!SETTLED_KINDS.has(chosen.kind))
    throw new CommandError(
      `${chosen.kind} cannot be settled: reconciliation resolves it, or a workflow of ${topUp} is stuck.`,
    );
  return chosen;
}

async function reconcileAfterRestore({ json, dataDir }: ReconcileOptions): Promise<void> {
  const progress = nothingYet();
  await inspect(
    { json, changed: () => changedIn(progress) },
    () => takeOverNow(dataDir, progress).finally(endProgress),
    (found) => {
      const ok = found.differences.length === 0;
      process.stdout.write(json ? `${JSON.stringify({ ok, ...found })}\n` : reportRestored(found));
      return ok;
    },
  );
}

/** A repeated command finds these done, and does not list them. */
function changedIn(progress: Progress) {
  const credited = wireIds(progress.credited);
  const entered = wireIds(progress.entered);
  const parts = [
    ...(credited.length > 0 ? [`credited ${credited.length}: ${credited.join(', ')}`] : []),
    ...(entered.length > 0 ? [`entered ${entered.length}: ${entered.join(', ')}`] : []),
  ];
  return {
    text: parts.length > 0 ? `. Before that, ${parts.join('; ')}. Repeat the command.` : '',
    json: { credited, entered: entered.map((topUpId) => ({ topUpId })) },
  };
}

function wireIds(topUps: Iterable<string>): string[] {
  return [...topUps].map((id) => wireId('topUp', id));
}

async function takeOverNow(dataDir: string, progress: Progress) {
  const stripe = createStripe(readStripeConfig(await environmentOf(dataDir)), {
    maxNetworkRetries: RETRIES_MAX,
  });
  return withDatabase(dataDir, async (database) => {
    // It would deliver old notices, and have cards charged for balances that are only missing here.
    if (await isRelayRunning(database)) {
      throw new CommandError('A worker is running. Stop all workers and API processes first.');
    }
    const books = { database, stripe };
    const { looked, credited, entered } = await takeOverSince(books, showProgress, progress);
    const topUps = await Promise.all(entered.map((id) => getTopUp(database, id)));
    return {
      looked,
      credited: wireIds(credited),
      entered: topUps.map(({ id, accountId, amountMicros, method, status }) => ({
        topUpId: wireId('topUp', id),
        accountId: wireId('account', accountId),
        amount: dollarsOf(amountMicros),
        method,
        status,
      })),
      differences: await readDifferences(database),
    };
  });
}

function reportRestored({
  looked,
  credited,
  entered,
  differences,
}: Awaited<ReturnType<typeof takeOverNow>>): string {
  const lines = entered.map(
    ({ topUpId, accountId, amount, method, status }) =>
      `  ${topUpId}: ${formatDollarNumber(amount)}, ${method}, ${status}, account ${accountId}\n`,
  );
  return (
    `Checked ${count(looked, 'top-up')} with the processor, credited ${credited.length}. ` +
    `Entered ${count(entered.length, 'top-up')} that the restored database did not have${
      lines.length === 0 ? '.' : `:\n${lines.join('')}`
    }\n${report(differences)}`
  );
}

async function reconcile({ json, dataDir }: ReconcileOptions): Promise<void> {
  showProgress('Comparing with the payment processor');
  await inspect(
    { json },
    () => compareNow(dataDir).finally(endProgress),
    (found) => {
      const { looked, nudged, differences } = found;
      const ok = differences.length === 0;
      process.stdout.write(
        json
          ? `${JSON.stringify({ ok, looked, nudged, differences })}\n`
          : `Checked ${count(looked, 'top-up')} with the processor and notified ${count(nudged, 'workflow')}. ${report(differences)}`,
      );
      return ok;
    },
  );
}

type Comparison = Awaited<ReturnType<typeof compareNow>>;

async function compareNow(dataDir: string) {
  // Without a schema no worker starts, and the run below would wait for one.
  await withDatabase(dataDir, readDifferences);
  const { looked, nudged } = await runNow(dataDir);
  return { looked, nudged, differences: await withDatabase(dataDir, readDifferences) };
}

async function readDifferences(database: Database) {
  const found = await listDifferences(database);
  return found.map(({ topUpId, processorMicros, ledgerMicros, ...rest }) => ({
    topUpId: wireId('topUp', topUpId),
    processor: dollarsOf(processorMicros),
    ledger: dollarsOf(ledgerMicros),
    ...rest,
  }));
}

function report(differences: Comparison['differences']): string {
  const lines = differences.map(
    ({ topUpId, kind, processor, ledger, since, paymentIntentIds, creditedPaymentIntentId }) =>
      `${topUpId}: ${differenceText(kind, processor, ledger)}, since ${since} (processor ${formatDollarNumber(processor)}, ` +
      `ledger ${formatDollarNumber(ledger)}; ` +
      `${paymentsText(paymentIntentIds, creditedPaymentIntentId)})\n`,
  );
  return lines.length === 0
    ? 'No differences.\n'
    : `${count(lines.length, 'difference')}:\n${lines.join('')}`;
}

function count(number: number, noun: string): string {
  return `${number} ${number === 1 ? noun : `${noun}s`}`;
}

async function runNow(dataDir: string): Promise<Reconciliation> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    return await withTemporal(await environmentOf(dataDir), (temporal) =>
      reconcileNow(temporal, signal),
    );
  } catch (error) {
    // Its own message says only that it failed.
    if (error instanceof WorkflowFailedError)
      throw new CommandError(rootCause(error.cause) ?? error.message, { cause: error });
    if (!signal.aborted) throw error;
    throw new CommandError(
      `The reconciliation is still running after ${TIMEOUT_MS / 60_000} minutes, and continues in the background. Is a worker running?`,
    );
  }
}
