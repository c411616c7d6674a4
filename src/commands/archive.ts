/** `farebox archive`: moves the charges of a closed month out of the ledger, with the holds of earlier months. */
import { InvalidArgumentError, type Command } from 'commander';
import { formatDollars } from '../domain/money.ts';
import { isOfClocks } from '../store/doctor/charge-checks.ts';
import { examineLedger } from '../store/doctor/ledger-checks.ts';
import { archiveInvocations } from '../store/agents/archive-invocations.ts';
import { archiveMonth, type ArchiveResult } from '../store/charges/archive-month.ts';
import { readClock, type Database } from '../store/database.ts';
import { dataDirOption } from './data-dir-option.ts';
import { CommandError, ifLost, withDatabase } from './database-command.ts';
import { endProgress, showProgress } from './inspection.ts';

interface ArchiveOptions {
  readonly month: string;
  readonly dataDir: string;
}

export function register(command: Command): void {
  command
    .requiredOption(
      '--month <month>',
      'such as 2025-01; it must have ended at least 101 days ago',
      monthOf,
    )
    .addOption(dataDirOption())
    .action(archive);
}

async function archive({ month, dataDir }: ArchiveOptions): Promise<void> {
  const work = async (database: Database) => {
    // A fault would be summed up with the rest, and could never be traced to its charge.
    const parts = ['holds', 'budgets', 'charges', 'earnings'] as const;
    // An operator closes a budget whose figures are wrong, and these stay wrong.
    const examination = { parts, leavesOutClosedBudgets: true, report: showProgress };
    const findings = await examineLedger(database, examination);
    const fault = findings.find(({ check }) => !isOfClocks(check));
    if (fault)
      throw new CommandError(`Nothing was archived: ${fault.check} fails. Run farebox doctor.`);
    showProgress(`Archiving ${month}`);
    const archived = await archiveMonth(database, month, await readClock(database));
    endProgress();
    // Now, since the month is archived even if the rest fails.
    process.stdout.write(report(month, archived));
    if (archived.kind !== 'archived') return;
    showProgress('Archiving what agents received and returned');
    const invocations = await archiveInvocations(database, archived.toMs);
    endProgress();
    if (invocations === undefined) return;
    process.stdout.write(
      `What agents received and returned until then is now in ${invocations}.\n`,
    );
  };
  await withDatabase(dataDir, work, { silenceMsMax: null })
    .catch(ifLost('Repeat the command. If the month was archived, it names a later one.'))
    .finally(endProgress);
}

const UNSETTLED = {
  charges_rest: (month: string) =>
    `Some charges of ${month} or earlier are in charges_rest: run farebox migrate first.`,
  earnings_tail: (month: string) =>
    `Some earnings of ${month} or earlier are not rolled up yet. Is a worker running?`,
  holds_rest: (month: string) =>
    `Some holds from before ${month} are in holds_rest: run farebox migrate first.`,
  open_holds: (month: string) =>
    `Some holds from before ${month} are still open. Is a worker running?`,
} as const;

function report(month: string, result: ArchiveResult): string {
  switch (result.kind) {
    case 'archived': {
      const { charges, amountMicros, table, holdTables } = result;
      const amount = formatDollars(amountMicros);
      const head = `Archived ${charges} charges of ${month}, ${amount} in total. They are now in ${table}.\n`;
      if (holdTables.length === 0) return head;
      return `${head}The holds and leases of earlier months are now in ${holdTables.join(', ')}.\n`;
    }
    case 'not_closed':
      throw new CommandError(`${month} cannot be archived before ${result.from}.`);
    case 'not_next':
      throw new CommandError(
        result.next === null
          ? 'No month is left to archive.'
          : `The next month to archive is ${result.next}.`,
      );
    case 'unsettled':
      throw new CommandError(UNSETTLED[result.what](month));
    case 'busy':
      throw new CommandError(
        'The tables of charges and holds are too busy, or PostgreSQL is vacuuming them (see pg_stat_progress_vacuum). ' +
          'Nothing was archived yet. Try again later: the command continues where it stopped.',
      );
  }
}

function monthOf(text: string): string {
  if (/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) return text;
  throw new InvalidArgumentError('It must be a month, such as 2025-01.');
}
