/** `farebox doctor`: proves the books, or names what is off and exits with 1. */
import type { Command } from 'commander';
import { readStripeConfig } from '../config.ts';
import { environmentOf } from '../embedded/environment.ts';
import { auditProcessor } from '../stripe/compare-top-ups.ts';
import { createStripe } from '../stripe/calls.ts';
import { auditLedger, CHECK_NAMES, type Finding } from '../store/audit/ledger-checks.ts';
import { dataDirOption } from './data-dir-option.ts';
import { withLedger } from './ledger-command.ts';

interface DoctorOptions {
  readonly json: boolean;
  readonly processor: boolean;
  readonly dataDir: string;
}

export function register(program: Command): void {
  program
    .command('doctor')
    .description('prove that the books are whole, from the rows and against the processor')
    .option('--json', 'print JSON', false)
    .option('--no-processor', 'leave the payment processor out')
    .addOption(dataDirOption())
    .action(examine);
}

async function examine({ json, processor, dataDir }: DoctorOptions): Promise<void> {
  const env = await environmentOf(dataDir);
  const findings = await withLedger(dataDir, async (database) => [
    ...(await auditLedger(database)),
    ...(processor ? await auditProcessor(database, createStripe(readStripeConfig(env))) : []),
  ]);
  const whole = findings.length === 0;
  process.stdout.write(
    json ? `${JSON.stringify({ whole, findings })}\n` : report(findings, processor),
  );
  if (!whole) process.exitCode = 1;
}

function report(findings: readonly Finding[], processor: boolean): string {
  if (findings.length > 0) {
    const lines = findings.map(({ check, subject, detail }) => `${check}: ${subject}, ${detail}\n`);
    return `The books are off. What does not hold:\n${lines.join('')}`;
  }
  const proved = processor ? [...CHECK_NAMES, 'the processor and the ledger agree'] : CHECK_NAMES;
  return `The books are whole:\n${proved.map((check) => `  ${check}\n`).join('')}`;
}
