/**
 * `farebox doctor`: proves the books, or lists each fault and exits with 1; exits with 2 if it could not check. What it
 * found in other parts is shown and stored all the same.
 */
import { InvalidArgumentError, type Command } from 'commander';
import { namesTemporal, readScheduleConfig, readStripeConfig } from '../config.ts';
import { parseTime } from '../domain/iso-time.ts';
import { environmentOf } from '../embedded/environment.ts';
import { mailServer, readMasterSecrets, required, type Environment } from '../read-setting.ts';
import { failureReason } from '../stripe/errors.ts';
import type { Finding } from '../store/doctor/findings.ts';
import { recordExaminations } from '../store/doctor/last-findings.ts';
import {
  examineLedger,
  checkNames,
  type CheckSettings,
  LEDGER_PARTS,
  type LedgerPart,
} from '../store/doctor/ledger-checks.ts';
import type { Database } from '../store/database.ts';
import { dataDirOption } from './data-dir-option.ts';
import { endProgress, inspect, showProgress } from './inspection.ts';
import { CommandError, withDatabaseOf } from './database-command.ts';

export const PARTS = [...LEDGER_PARTS, 'temporal', 'processor', 'mail'] as const;
export type Part = (typeof PARTS)[number];

const HELP = `
Parts:
  schema     compares tables, constraints, indexes, triggers, functions and their records with this release
  balances   consumers, movements and lots
  top-ups    top-ups, refunds, disputes and automatic top-ups
  delivery   overdue events, messages to workflows, top-ups, reconciliations and archiving of WAL
  audit-log  the chain of the audit log, and changes that it does not have or that differ
  approvals  pending requests for approval, and what the decisions changed
  holds      open, captured and expired holds; reads every charge
  budgets    what budgets and spend keys have used; reads every charge
  charges    charges, their order, their refunds and their receipts; reads every charge
  earnings   sums of earnings; reads every charge
  temporal   search attributes, schedules, workflows that cannot continue, builds without workers; needs TEMPORAL_ADDRESS
  processor  payments, refunds and disputes at Stripe; lists all of them, or with --since those of newer top-ups
  mail       whether the mail server accepts SMTP_URL; sends nothing; skipped without SMTP_URL

Run \`farebox doctor --only schema,balances,top-ups,delivery,audit-log,approvals,temporal\` every minute and all parts every night.
Start no run while another one lasts: \`balances\`, \`top-ups\` and \`audit-log\` take longer as the ledger grows.
Exit codes: 0 if every check passed, 1 if a check failed, 2 if doctor could not check. If a check failed and
another part could not be checked, the exit code is 1, and both are printed.
`;

interface DoctorOptions {
  readonly json: boolean;
  readonly only?: readonly Part[];
  readonly processor: boolean;
  /** Unix milliseconds. */
  readonly since?: number;
  readonly dataDir: string;
}

export function register(command: Command): void {
  command
    .option('--json', 'print JSON', false)
    .option('--only <parts>', 'check these parts, separated by commas', partsOf)
    .option(
      '--since <time>',
      'compare with the processor only top-ups requested since then',
      timeOf,
    )
    .option('--no-processor', 'skip the payment processor, Temporal and the mail server')
    .addOption(dataDirOption())
    .addHelpText('after', HELP)
    .action(examine);
}

async function examine({ json, only, processor, since, dataDir }: DoctorOptions): Promise<void> {
  const parts = (only ?? PARTS).filter((part) => processor || isOfLedger(part));
  const look = async (): Promise<Examination> => {
    if (parts.length === 0) throw new CommandError('--no-processor leaves nothing to check.');
    const env = await environmentOf(dataDir);
    if (only && parts.includes('temporal') && !namesTemporal(env)) {
      throw new CommandError('Temporal cannot be checked: TEMPORAL_ADDRESS is not set.');
    }
    if (only && parts.includes('mail') && env['SMTP_URL'] === undefined) {
      throw new CommandError('The mail server cannot be checked: SMTP_URL is not set.');
    }
    return findFaults(env, parts, since);
  };
  await inspect({ json }, look, ({ findings, checks, error }) => {
    const ok = findings.length === 0;
    process.stdout.write(
      json ? `${JSON.stringify({ ok, findings, error })}\n` : report(findings, checks),
    );
    if (error && !json)
      process.stderr.write(`farebox: could not check the rest: ${error.message}\n`);
    return ok;
  });
}

interface Examination {
  readonly findings: readonly Finding[];
  /** The names of the checks that ran. */
  readonly checks: readonly string[];
  /** Why the rest was not checked. */
  readonly error?: { readonly message: string };
}

/** Without an address there is no Temporal or no mail server to ask, so all other parts are checked. */
export async function findFaults(
  env: Environment,
  parts: readonly Part[],
  sinceMs?: number,
): Promise<Examination> {
  const settings = {
    masterSecrets: env['MASTER_SECRET'] ? [...readMasterSecrets(env).all.keys()] : undefined,
    reconcileEverySeconds: readScheduleConfig(env).reconcileEverySeconds,
  };
  const findings: Finding[] = [];
  const checks: string[] = [];
  const hasAddress = (part: Part) =>
    part === 'temporal' ? namesTemporal(env) : part !== 'mail' || env['SMTP_URL'] !== undefined;
  const asked = parts.filter(hasAddress);
  const work = async (database: Database): Promise<Examination> => {
    const examined: Part[] = [];
    const errors: unknown[] = [];
    for (const part of asked) {
      try {
        await examinePart(part, { env, settings, database, sinceMs }, findings, checks);
        examined.push(part);
      } catch (error) {
        errors.push(error);
        // Without Temporal, payments are not credited, and Stripe shows them. Without the database, nothing does.
        if (isOfLedger(part)) break;
      }
    }
    // The last result of a part is that of a whole check. The part `mail` never finds a fault, and its age would grow
    // once somebody had tried SMTP_URL by hand.
    const stored = examined.filter(
      (part) => part !== 'mail' && (part !== 'processor' || sinceMs === undefined),
    );
    await store(database, stored, findings);
    if (errors.length === 0) return { findings, checks };
    if (findings.length > 0) return { findings, checks, error: { message: sentencesOf(errors) } };
    const [error, second] = errors;
    const didOthersPass = examined.length > 0 && examined.length + errors.length === asked.length;
    if (second === undefined && !didOthersPass) throw error;
    throw new CommandError(sentencesOf(errors) + (didOthersPass ? ' The other parts passed.' : ''));
  };
  return withDatabaseOf(env, work, { silenceMsMax: null }).finally(endProgress);
}

function sentencesOf(errors: readonly unknown[]): string {
  return errors.map((error) => failureReason(error).replace(/(?<![.!?])$/, '.')).join(' ');
}

interface Examined {
  readonly env: Environment;
  readonly settings: CheckSettings;
  readonly database: Database;
  readonly sinceMs: number | undefined;
}

/**
 * Adds the names of the part's checks to `checks`, and what they find to `findings`, even if a later check
 * cannot run.
 */
async function examinePart(
  part: Part,
  { env, settings, database, sinceMs }: Examined,
  findings: Finding[],
  checks: string[],
): Promise<void> {
  if (isOfLedger(part)) {
    checks.push(...checkNames(part, settings));
    await examineLedger(database, { ...settings, parts: [part], report: showProgress }, findings);
  }
  // Temporal's client and Stripe's take longer to load than most checks take: only the checks that need them load them.
  if (part === 'temporal') {
    const { examineTemporal, TEMPORAL_CHECKS } = await import('./doctor-temporal.ts');
    showProgress(TEMPORAL_CHECKS[0]);
    checks.push(...TEMPORAL_CHECKS);
    findings.push(...(await examineTemporal(env)));
  }
  if (part === 'processor') {
    const { examineProcessor, PROCESSOR_CHECK } = await import('../stripe/examine-processor.ts');
    const { createStripe } = await import('../stripe/calls.ts');
    showProgress(PROCESSOR_CHECK);
    checks.push(PROCESSOR_CHECK);
    const stripe = createStripe(readStripeConfig(env));
    findings.push(...(await examineProcessor(database, stripe, sinceMs)));
  }
  if (part === 'mail') {
    const { checkMailServer, MAIL_CHECK } = await import('../mail/check-mail-server.ts');
    showProgress(MAIL_CHECK);
    checks.push(MAIL_CHECK);
    await checkMailServer(mailServer(required(env, 'SMTP_URL')));
  }
}

async function store(
  database: Database,
  parts: readonly Part[],
  findings: readonly Finding[],
): Promise<void> {
  if (parts.length === 0) return;
  await recordExaminations(database, parts, findings).catch((error: unknown) =>
    process.stderr.write(`farebox: the result was not stored: ${failureReason(error)}\n`),
  );
}

function isOfLedger(part: Part): part is LedgerPart {
  return part !== 'temporal' && part !== 'processor' && part !== 'mail';
}

export function report(findings: readonly Finding[], checks: readonly string[]): string {
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

function timeOf(text: string): number {
  const timeMs = parseTime(text);
  if (Number.isNaN(timeMs))
    throw new InvalidArgumentError('It must be a time, such as 2026-11-01.');
  return Math.max(timeMs, 0);
}

function partsOf(text: string): Part[] {
  const asked = text.split(',').map((part) => part.trim());
  const unknown = asked.find((part) => !PARTS.some((known) => known === part));
  if (unknown !== undefined) {
    throw new InvalidArgumentError(`Unknown part ${unknown}. Use ${PARTS.join(', ')}.`);
  }
  return PARTS.filter((part) => asked.includes(part));
}
