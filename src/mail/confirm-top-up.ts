/** The mail to the owner of an account whose bank wants an automatic top-up confirmed. Nobody else would see the link. */
import type { Logger } from 'pino';
import type { MailConfig } from '../config.ts';
import { mailer } from './send.ts';
import { formatDollars } from '../domain/money.ts';
import { confirmationUrl } from '../domain/top-up.ts';
import { getAccountOf } from '../store/accounts/accounts.ts';
import type { Database } from '../store/database.ts';
import type { TopUp } from '../store/top-ups/top-ups.ts';

export interface ConfirmTopUpMailDeps {
  readonly config: { readonly consoleUrl: string; readonly mail: MailConfig };
  readonly database: Database;
  readonly log: Logger;
}

/** Returns at once. A mail that could not be sent is logged; the console and the API show the link as well. */
export function confirmTopUpMailer({
  config,
  database,
  log,
}: ConfirmTopUpMailDeps): (topUp: TopUp) => void {
  const send = mailer({ config: config.mail, database, log });
  return ({ id, accountId, amountMicros }) =>
    void getAccountOf(database, accountId).then(
      ({ email }) =>
        send({
          recipient: email,
          subject: 'Confirm a top-up at your bank',
          body:
            `Your bank wants you to confirm an automatic top-up of ${formatDollars(amountMicros)}:\n\n` +
            `${confirmationUrl(config.consoleUrl, id)}\n\n` +
            'If you do nothing, you pay nothing, and the request ends within 24 hours.',
        }),
      (err: unknown) => log.error({ err, topUpId: id }, 'a mail could not be sent'),
    );
}
