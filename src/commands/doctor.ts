/** `farebox doctor`: proves the books, or names each fault and exits with 1; exits with 2 when it could not look. */
import { InvalidArgumentError, type Command } from 'commander';
import { readMasterSecrets, readStripeConfig } from '../config.ts';
import { environmentOf } from '../embedded/environment.ts';
import { auditProcessor, PROCESSOR_CHECK } from '../stripe/audit-processor.ts';
import { createStripe } from '../stripe/calls.ts';
import {
  auditLedger,
  checkNames,
  LEDGER_PARTS,
  type Finding,
  type LedgerPart,
} from '../store/audit/ledger-checks.ts';
import { dataDirOption } from './data-dir-option.ts';
import { endProgress, inspect, showProgress } from './inspection.ts';
import { withLedger } from './ledger-command.ts';

const PARTS = [...LEDGER_PARTS, 'processor'] as const;
type Part = (typeof PARTS)[number];

const HELP = `
Parts, from the cheapest to the dearest:
  schema     tables, constraints, indexes, triggers and functions, against this release
  balances   consumers, movements and lots
  top-ups    top-ups, refunds, disputes and automatic top-ups
  charges    reads every charge
  earnings   sums of earnings; reads every charge
  processor  payments, refunds and disputes at Stripe; lists all of them

A watcher may run \`farebox doctor --only schema,balances,top-ups\` every minute, and all parts every night.
Exits with 0 when all is well, with 1 when a check failed, and with 2 when it could not look.
`;

interface DoctorOptions {
  readonly json: boolean;
  readonly only?: readonly Part[];
  readonly processor: boolean;
  readonly dataDir: string;
}

export function register(program: Command): void {
  program
    .command('doctor')
    .description('check the books, against every row and against the payment processor')
    .option('--json', 'print JSON', false)
    .option('--only <parts>', 'check these parts, separated by commas', partsOf)
    .option('--no-processor', 'skip the payment processor')
    .addOption(dataDirOption())
    .addHelpText('after', HELP)
    .action(examine);
}

async function examine({ json, only, processor, dataDir }: DoctorOptions): Promise<void> {
  const parts = (only ?? PARTS).filter((part) => processor || part !== 'processor');
  await inspect(
    { json },
    () => findFaults(dataDir, parts),
    ({ findings, checks }) => {
      const ok = findings.length === 0;
      process.stdout.write(
        json ? `${JSON.stringify({ ok, findings })}\n` : report(findings, checks),
      );
      return ok;
    },
  );
}

interface Examination {
  readonly findings: readonly Finding[];
  /** Those that were made. */
  readonly checks: readonly string[];
}

async function findFaults(dataDir: string, parts: readonly Part[]): Promise<Examination> {
  const env = await environmentOf(dataDir);
  const ledgerParts = parts.filter((part): part is LedgerPart => part !== 'processor');
  const receiptKeys = env['MASTER_SECRET'] ? [...readMasterSecrets(env).keys()] : undefined;
  return withLedger(dataDir, async (database) => {
    const findings = await auditLedger(database, {
      parts: ledgerParts,
      receiptKeys,
      report: showProgress,
    });
    const checks = ledgerParts.flatMap((part) => checkNames(part, receiptKeys));
    if (parts.includes('processor')) {
      showProgress(PROCESSOR_CHECK);
      checks.push(PROCESSOR_CHECK);
      findings.push(...(await auditProcessor(database, createStripe(readStripeConfig(env)))));
    }
    return { findings, checks };
  }).finally(endProgress);
}

function report(findings: readonly Finding[], checks: readonly string[]): string {
  if (findings.length === 0) {
    return `All checks passed:\n${checks.map((check) => `  ${check}\n`).join('')}`;
  }
  const failed = [...Map.groupBy(findings, ({ check }) => check).values()];
  return `${failed.length} ${failed.length === 1 ? 'check' : 'checks'} failed:\n${failed.map(reportOne).join('')}`;
}

function reportOne(findings: readonly Finding[]): string {
  const lines = findings.map(({ check, subject, detail }) => `${check}: ${subject}, ${detail}\n`);
  const [{ check, offenders } = { check: '', offenders: 0 }] = findings;
  const more = offenders - findings.length;
  return more > 0 ? `${lines.join('')}${check}: and ${more} more\n` : lines.join('');
}

function partsOf(text: string): Part[] {
  const asked = text.split(',').map((part) => part.trim());
  const unknown = asked.find((part) => !PARTS.some((known) => known === part));
  if (unknown !== undefined) {
    throw new InvalidArgumentError(`${unknown} is not a part. The parts: ${PARTS.join(', ')}.`);
  }
  return PARTS.filter((part) => asked.includes(part));
}
