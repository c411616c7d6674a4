/** Tells owners of accounts that their automatic top-ups have turned themselves off, before charges are refused. */
import type { AutoTopUpFailureCode, SuspectReason } from '../domain/top-up.ts';
import {
  dropTurnedOff,
  recordTurnedOffMailed,
  takeTurnedOff,
  type TurnedOff,
} from '../store/top-ups/auto-top-up-mails.ts';
import { owedMails, type OwedMailDeps, type OwedMails } from './owed-mails.ts';
import type { Mail } from './send.ts';

export function autoTopUpMails(deps: OwedMailDeps): OwedMails<TurnedOff> {
  const { config, database } = deps;
  const url = `${config.consoleUrl}/console/balance`;
  return owedMails(deps, {
    take: (untriedForMs) => takeTurnedOff(database, untriedForMs),
    mailOf: async ({ email, reason }) => autoTopUpsOffMail(email, reason, url),
    recordMailed: (owed) => recordTurnedOffMailed(database, owed),
    drop: (owedForMs) => dropTurnedOff(database, owedForMs),
    kindOf: () => 'auto_top_ups_off',
  });
}

const SUSPICIONS: Readonly<Record<SuspectReason, string>> = {
  payment_disputed:
    'A payment to your Farebox account was disputed, so Farebox turned automatic top-ups off. Ask the cardholder why ' +
    'before you turn them on again.',
  fraud_warning:
    'A bank reported a payment to your Farebox account as possible fraud, so Farebox turned automatic top-ups off. Ask ' +
    'the cardholder whether the payment was genuine before you turn them on again.',
};

const FAILURES: Readonly<Record<AutoTopUpFailureCode, string>> = {
  card_declined: 'The bank declined the saved card.',
  card_expired: 'The saved card has expired.',
  no_saved_card: 'No card is saved.',
  payment_failed: 'The bank did not complete the payment.',
  tax_address_missing:
    'The address that the tax depends on is missing: pay at checkout, which asks for it.',
  invalid_amount:
    'With tax, the payment exceeds the most that a card can be charged: choose a smaller amount.',
};

function autoTopUpsOffMail(recipient: string, reason: string, url: string): Mail {
  return {
    recipient,
    subject: 'Automatic top-ups were turned off for your Farebox account',
    body:
      `${isSuspect(reason) ? SUSPICIONS[reason] : failedText(reason)}\n\n` +
      'Farebox no longer tops up your balance automatically, and refuses charges that the balance does not cover. ' +
      `${isSuspect(reason) ? 'You can turn' : 'You can use or save another card under Balance. Then turn'} ` +
      `automatic top-ups on again ${isSuspect(reason) ? 'under Balance' : 'there'}:\n\n${url}\n`,
  };
}

function isSuspect(reason: string): reason is SuspectReason {
  return Object.hasOwn(SUSPICIONS, reason);
}

function failedText(reason: string): string {
  const texts: Readonly<Record<string, string>> = FAILURES;
  return (
    'Automatic top-ups failed, so Farebox turned them off for your account. The last failure: ' +
    (texts[reason] ?? reason)
  );
}
