/** `farebox refund`: refunds the unspent part of a top-up to the card that paid it. For operators. */
import type { Command } from 'commander';
import { uuidOf, wireId } from '../domain/ids.ts';
import { dollarsOf, formatDollars, isWholeCents, type Micros } from '../domain/money.ts';
import { requestRefund, type RefundResult } from '../store/top-ups/request-refund.ts';
import { keyOf } from './account-adjust.ts';
import { common, type Common } from './common-options.ts';
import { parsePositiveDollars } from './dollars.ts';
import { CommandError, ifLost, withDatabase } from './database-command.ts';
import { table } from './output.ts';

interface RefundOptions extends Common {
  readonly amount: Micros | undefined;
  readonly idempotencyKey?: string;
}

export function register(command: Command): void {
  common(
    command
      .argument('<top-up>')
      .option(
        '--amount <dollars>',
        'whole cents; by default the whole unspent part',
        parsePositiveDollars,
      )
      .option(
        '--idempotency-key <key>',
        'with the same key, a repeated command refunds only once',
        keyOf,
      ),
  ).action(refund);
}

async function refund(
  topUp: string,
  { amount, idempotencyKey, json, dataDir }: RefundOptions,
): Promise<void> {
  const topUpId = uuidOf('topUp', topUp);
  if (topUpId === undefined) throw new CommandError(`Top-up ${topUp} not found.`);
  if (amount !== undefined && !isWholeCents(amount)) {
    throw new CommandError('Refund amounts must be whole cents.');
  }
  const by = idempotencyKey === undefined ? undefined : { idempotencyKey };
  const result = await withDatabase(dataDir, (database) =>
    requestRefund(database, topUpId, amount, by),
  ).catch(ifLost(adviceOn(idempotencyKey)));
  if (result.kind !== 'requested') throw new CommandError(refusalOf(topUp, result));
  const asked = {
    refundId: wireId('topUpRefund', result.refundId),
    topUpId: topUp,
    amount: dollarsOf(result.amountMicros),
  };
  process.stdout.write(
    json
      ? `${JSON.stringify(asked)}\n`
      : `${table(asked)}\nRemoved from the balance. The workflow \`reversals\` makes the refund at Stripe.\n` +
          'If that fails, the amount is credited again, and the console and the workflow say why.\n',
  );
}

function adviceOn(idempotencyKey: string | undefined): string {
  return idempotencyKey === undefined
    ? 'Look for it in `farebox audit` before you repeat the command, or it may refund twice.'
    : 'Repeat the command with the same --idempotency-key: it refunds only once.';
}

function refusalOf(topUp: string, result: Exclude<RefundResult, { kind: 'requested' }>): string {
  switch (result.kind) {
    case 'key_reused':
      return 'This idempotency key belongs to another refund or adjustment.';
    case 'not_found':
      return `Top-up ${topUp} not found.`;
    case 'no_payment':
      return `${topUp} was credited manually, so there is no payment to refund. Use \`farebox account adjust\`.`;
    case 'not_refundable':
      return `${topUp} is ${result.status.replaceAll('_', ' ')}. Only a credited top-up without a dispute or chargeback can be refunded.`;
    case 'exceeds_unspent':
      if (result.refundableMicros === 0) {
        return `${topUp} has been spent in full, so there is nothing left to refund.`;
      }
      return `Only ${formatDollars(result.refundableMicros)} of ${topUp} is unspent and can be refunded.`;
  }
}
