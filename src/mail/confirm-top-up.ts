/**
 * The mail to the owner of an account whose bank wants an automatic top-up confirmed. Nobody else would see
 * the link.
 */
import type { Logger } from 'pino';
import type { MailConfig } from '../config.ts';
import { isSettled, mailSender } from './send.ts';
import { confirmationUrl, payableText } from '../domain/top-up.ts';
import { getAccount } from '../store/accounts/accounts.ts';
import type { Database } from '../store/database.ts';
import { recordOwnerMailed } from '../store/top-ups/authentication.ts';
import type { TopUp } from '../store/top-ups/top-ups.ts';

export interface ConfirmTopUpMailDeps {
  readonly config: { readonly consoleUrl: string; readonly mail: MailConfig };
  readonly database: Database;
  readonly log: Logger;
}

/**
 * Returns at once. A mail that could not be sent, or whose process was killed, is sent when the top-up's
 * workflow asks the processor again. The sweep makes it ask after 15 minutes. So the mail may arrive twice.
 * The console and the API show the link as well.
 */
export function confirmTopUpMailer({
  config,
  database,
  log,
}: ConfirmTopUpMailDeps): (topUp: TopUp) => void {
  const send = mailSender({ config: config.mail, database, log });
  const tell = async (topUp: TopUp) => {
    const { id, accountId } = topUp;
    const { email } = await getAccount(database, accountId);
    const outcome = await send({
      recipient: email,
      subject: 'Confirm a top-up at your bank',
      body:
        `Your bank wants you to confirm an automatic top-up of ${payableText(topUp)}:\n\n` +
        `${confirmationUrl(config.consoleUrl, id)}\n\n` +
        'If you do nothing, you pay nothing, and the request ends within 24 hours.',
    });
    if (isSettled(outcome)) await recordOwnerMailed(database, id);
  };
  /** A slow mail server must not get the mail once for each question. */
  const underWay = new Set<string>();
  return (topUp) => {
    const { id: topUpId } = topUp;
    if (underWay.has(topUpId)) return;
    underWay.add(topUpId);
    void tell(topUp)
      .catch((err: unknown) => log.error({ err, topUpId }, 'a mail could not be sent'))
      .finally(() => underWay.delete(topUpId));
  };
}
