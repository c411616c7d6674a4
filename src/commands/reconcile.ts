/**
 * `farebox reconcile`: compares the processor's books with ours now. Exits with 1 if they differ, with 2 if it could
 * not check.
 */
import type { Command } from 'commander';
import { readTemporalConfig } from '../config.ts';
import { DIFFERENCES } from '../domain/difference.ts';
import { wireId } from '../domain/ids.ts';
import { dollarsOf } from '../domain/money.ts';
import { environmentOf } from '../embedded/environment.ts';
import { listDifferences } from '../store/audit/reconciliation.ts';
import { createTemporalClient } from '../temporal/client.ts';
import { reconcileNow } from '../temporal/reconcile-now.ts';
import type { Reconciliation } from '../../workflows/reconcile-top-ups.ts';
import { dataDirOption } from './data-dir-option.ts';
import { endProgress, inspect, showProgress } from './inspection.ts';
import { CommandError, withDatabase } from './database-command.ts';

/** The first comparison of a large account takes minutes. */
const TIMEOUT_MS = 600_000;
/** A process that has just started must connect first, which takes seconds on a busy machine. */
const CONNECT_TIMEOUT_MS = 10_000;

interface ReconcileOptions {
  readonly json: boolean;
  readonly dataDir: string;
}

export function register(command: Command): void {
  command.option('--json', 'print JSON', false).addOption(dataDirOption()).action(reconcile);
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
          : `Checked ${count(looked, 'top-up')} with the processor, restarted ${nudged}. ${report(differences)}`,
      );
      return ok;
    },
  );
}

type Comparison = Awaited<ReturnType<typeof compareNow>>;

async function compareNow(dataDir: string) {
  const { looked, nudged } = await runNow(dataDir);
  const found = await withDatabase(dataDir, (database) => listDifferences(database));
  const differences = found.map(({ topUpId, processorMicros, ledgerMicros, ...rest }) => ({
    topUpId: wireId('topUp', topUpId),
    processor: dollarsOf(processorMicros),
    ledger: dollarsOf(ledgerMicros),
    ...rest,
  }));
  return { looked, nudged, differences };
}

function report(differences: Comparison['differences']): string {
  const lines = differences.map(
    ({ topUpId, kind, processor, ledger, since, paymentIntentIds }) =>
      `${topUpId}: ${DIFFERENCES[kind]}, since ${since} (processor $${processor}, ledger $${ledger}; ` +
      `${paymentIntentIds.join(', ') || 'no payment'})\n`,
  );
  return lines.length === 0
    ? 'No differences.\n'
    : `${count(lines.length, 'difference')}:\n${lines.join('')}`;
}

function count(number: number, noun: string): string {
  return `${number} ${number === 1 ? noun : `${noun}s`}`;
}

async function runNow(dataDir: string): Promise<Reconciliation> {
  const temporal = createTemporalClient(readTemporalConfig(await environmentOf(dataDir)));
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    if (!(await temporal.isUp(CONNECT_TIMEOUT_MS)))
      throw new CommandError('Temporal did not respond.');
    return await reconcileNow(temporal, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new CommandError(
      `Still running after ${TIMEOUT_MS / 60_000} minutes, and continues in the background. Is a worker running?`,
    );
  } finally {
    await temporal.close();
  }
}
