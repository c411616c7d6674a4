/** `farebox doctor`: proves the books, or names each fault and exits with 1; exits with 2 when it could not look. */
import type { Command } from 'commander';
import {
  readScheduleConfig,
  readStripeConfig,
  readTemporalConfig,
  type ScheduleConfig,
  type TemporalConfig,
} from '../config.ts';
import { environmentOf } from '../embedded/environment.ts';
import { auditProcessor } from '../stripe/compare-top-ups.ts';
import { createStripe } from '../stripe/calls.ts';
import { auditLedger, CHECK_NAMES, type Finding } from '../store/audit/ledger-checks.ts';
import { auditReconciliation, RECONCILED_CHECK } from '../store/audit/reconciliation.ts';
import { createTemporalClient } from '../temporal/client.ts';
import { listMissingSchedules, schedulesOf } from '../temporal/schedules.ts';
import { dataDirOption } from './data-dir-option.ts';
import { endProgress, inspect, showProgress } from './inspection.ts';
import { CommandError, withLedger } from './ledger-command.ts';

const SCHEDULES_CHECK = 'Temporal has the schedules';
const PROCESSOR_CHECK = 'the ledger agrees with the processor';

interface DoctorOptions {
  readonly json: boolean;
  readonly processor: boolean;
  readonly dataDir: string;
}

export function register(program: Command): void {
  program
    .command('doctor')
    .description('check the books, against every row and against the payment processor')
    .option('--json', 'print JSON', false)
    .option('--no-processor', 'skip the payment processor and Temporal')
    .addOption(dataDirOption())
    .action(examine);
}

async function examine({ json, processor, dataDir }: DoctorOptions): Promise<void> {
  await inspect(
    { json },
    () => findFaults(dataDir, processor),
    (findings) => {
      const ok = findings.length === 0;
      process.stdout.write(
        json ? `${JSON.stringify({ ok, findings })}\n` : report(findings, processor),
      );
      return ok;
    },
  );
}

async function findFaults(dataDir: string, processor: boolean): Promise<Finding[]> {
  const env = await environmentOf(dataDir);
  return withLedger(dataDir, async (database) => {
    const findings = await auditLedger(database, showProgress);
    const schedules = readScheduleConfig(env);
    findings.push(...(await auditReconciliation(database, schedules.reconcileEverySeconds)));
    if (processor && env['TEMPORAL_ADDRESS'] !== undefined) {
      showProgress(SCHEDULES_CHECK);
      findings.push(...(await auditSchedules(readTemporalConfig(env), schedules)));
    }
    if (processor) {
      showProgress(PROCESSOR_CHECK);
      findings.push(...(await auditProcessor(database, createStripe(readStripeConfig(env)))));
    }
    return findings;
  }).finally(endProgress);
}

/** A schedule that is gone is made again by the next worker that looks, within a minute. */
async function auditSchedules(
  config: TemporalConfig,
  schedules: ScheduleConfig,
): Promise<readonly Finding[]> {
  const temporal = createTemporalClient(config);
  try {
    if (!(await temporal.isUp())) throw new CommandError('Temporal does not answer.');
    const missing = await listMissingSchedules(temporal, schedulesOf(schedules));
    return missing.map((subject) => ({ check: SCHEDULES_CHECK, subject, detail: 'not found' }));
  } finally {
    await temporal.close();
  }
}

function report(findings: readonly Finding[], processor: boolean): string {
  if (findings.length === 0) {
    const outside = processor ? [SCHEDULES_CHECK, PROCESSOR_CHECK] : [];
    const proved = [...CHECK_NAMES, RECONCILED_CHECK, ...outside];
    return `All checks passed:\n${proved.map((check) => `  ${check}\n`).join('')}`;
  }
  const failed = new Set(findings.map(({ check }) => check)).size;
  const lines = findings.map(({ check, subject, detail }) => `${check}: ${subject}, ${detail}\n`);
  return `${failed} ${failed === 1 ? 'check' : 'checks'} failed:\n${lines.join('')}`;
}
