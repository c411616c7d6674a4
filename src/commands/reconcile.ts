/** `farebox reconcile`: holds the processor's books against ours now, and shows what differs; then it exits with 1. */
import type { Command } from 'commander';
import { readTemporalConfig } from '../config.ts';
import { DIFFERENCES } from '../domain/difference.ts';
import { wireId } from '../domain/ids.ts';
import { dollarsOf } from '../domain/money.ts';
import { environmentOf } from '../embedded/environment.ts';
import { listDifferences } from '../store/audit/reconciliation.ts';
import { createTemporalClient } from '../temporal/client.ts';
import { reconcileNow } from '../temporal/reconciliation.ts';
import type { Reconciliation } from '../../workflows/reconcile-top-ups.ts';
import { dataDirOption } from './data-dir-option.ts';
import { CommandError, withLedger } from './ledger-command.ts';

/** The first walk of a large account takes minutes. */
const TIMEOUT_MS = 600_000;

interface ReconcileOptions {
  readonly json: boolean;
  readonly dataDir: string;
}

export function register(program: Command): void {
  program
    .command('reconcile')
    .description('compare payments, refunds and disputes with the processor, and mend what can be')
    .option('--json', 'print JSON', false)
    .addOption(dataDirOption())
    .action(reconcile);
}

async function reconcile({ json, dataDir }: ReconcileOptions): Promise<void> {
  const { looked, nudged } = await runNow(dataDir);
  const found = await withLedger(dataDir, (database) => listDifferences(database));
  const differences = found.map(({ topUpId, processorMicros, ledgerMicros, ...rest }) => ({
    topUpId: wireId('topUp', topUpId),
    processor: dollarsOf(processorMicros),
    ledger: dollarsOf(ledgerMicros),
    ...rest,
  }));
  const lines = differences.map(
    ({ topUpId, kind, processor, ledger, since, paymentIntentIds }) =>
      `${topUpId}: ${DIFFERENCES[kind]}, since ${since} (processor ${processor}, ledger ${ledger}; ` +
      `${paymentIntentIds.join(', ') || 'no payment'})\n`,
  );
  const verdict = lines.length === 0 ? 'Nothing differs.' : 'What differs:';
  process.stdout.write(
    json
      ? `${JSON.stringify({ looked, nudged, differences })}\n`
      : `Asked the processor about ${looked} top-ups, set ${nudged} going. ${verdict}\n${lines.join('')}`,
  );
  if (lines.length > 0) process.exitCode = 1;
}

async function runNow(dataDir: string): Promise<Reconciliation> {
  const temporal = createTemporalClient(readTemporalConfig(await environmentOf(dataDir)));
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    if (!(await temporal.isUp())) throw new CommandError('Temporal does not answer.');
    return await reconcileNow(temporal, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new CommandError(
      `It did not end within ${TIMEOUT_MS / 60_000} minutes. Does a worker run? It goes on by itself.`,
    );
  } finally {
    await temporal.close();
  }
}
