/** `farebox refund`: gives the unspent part of a top-up back to the card that paid it. An operator's command. */
import type { Command } from 'commander';
import { uuidOf, wireId } from '../domain/ids.ts';
import { centsOf, dollarsOf, type Micros } from '../domain/money.ts';
import { requestRefund, type RefundResult } from '../store/top-ups/request-refund.ts';
import { dataDirOption } from './data-dir-option.ts';
import { positiveDollarsOf } from './dollars.ts';
import { CommandError, table, withLedger } from './ledger-command.ts';

interface RefundOptions {
  readonly amount: Micros | undefined;
  readonly json: boolean;
  readonly dataDir: string;
}

export function register(program: Command): void {
  program
    .command('refund <top-up>')
    .description('give the unspent part of a top-up back to the card that paid it')
    .option(
      '--amount <dollars>',
      'whole cents; all that is unspent when left out',
      positiveDollarsOf,
    )
    .option('--json', 'print JSON', false)
    .addOption(dataDirOption())
    .action(refund);
}

async function refund(topUp: string, { amount, json, dataDir }: RefundOptions): Promise<void> {
  const topUpId = uuidOf('topUp', topUp);
  if (topUpId === undefined) throw new CommandError(`There is no top-up ${topUp}.`);
  if (amount !== undefined && centsOf(amount) === undefined) {
    throw new CommandError('A refund is of whole cents.');
  }
  const result = await withLedger(dataDir, (database) => requestRefund(database, topUpId, amount));
  if (result.kind !== 'requested') throw new CommandError(refusalOf(topUp, result));
  const asked = {
    refundId: wireId('topUpRefund', result.refundId),
    topUpId: topUp,
    amount: dollarsOf(result.amountMicros),
  };
  process.stdout.write(
    json
      ? `${JSON.stringify(asked)}\n`
      : `${table(asked)}\nIt is out of the balance. The workflow top-up/${topUp} has the processor pay it, and\n` +
          'credits it again should that fail.\n',
  );
}

function refusalOf(topUp: string, result: Exclude<RefundResult, { kind: 'requested' }>): string {
  switch (result.kind) {
    case 'not_found':
      return `There is no top-up ${topUp}.`;
    case 'no_payment':
      return `${topUp} was booked by hand, so there is no payment to refund: use \`farebox account adjust\`.`;
    case 'not_refundable':
      return `${topUp} is ${result.status}: only what is credited, and neither disputed nor charged back, can be refunded.`;
    case 'exceeds_unspent':
      return `Of ${topUp} ${dollarsOf(result.refundableMicros)} dollars can be refunded: what is unspent of it, in whole cents.`;
  }
}
