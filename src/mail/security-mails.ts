/**
 * Tells owners of accounts about changes to how they sign in, and to who gets their events. The change writes
 * a row that owes the mail, until a mail server has it: otherwise, an intruder could wait for an outage of the
 * mail server. A mail may arrive twice.
 */
import {
  dropOwedMails,
  findOwedMail,
  recordSecurityMailed,
  takeOwedMail,
  type OwedMail,
  type OwedMailKind,
} from '../store/console/owed-mails.ts';
import { countPasskeys, findUserEmail } from '../store/console/users.ts';
import { owedMails, type OwedMailDeps } from './owed-mails.ts';
import { SECURITY_MAIL_TEXTS } from './security-mail-texts.ts';
import type { Mail } from './send.ts';

export interface SecurityMails {
  /**
   * Call it after the change. Sends the mail that the change owes, without delaying the request;
   * `sendOverdue` repeats what fails.
   */
  readonly tell: (userId: string, kind: OwedMailKind) => void;
  /** Sends what was owed before. Never rejects, and does nothing while it runs already. */
  readonly sendOverdue: () => Promise<void>;
}

export function securityMails(deps: OwedMailDeps): SecurityMails {
  const { config, database, log } = deps;

  async function mailOf({ userId, kind }: OwedMail): Promise<Mail | null> {
    const recipient = await findUserEmail(database, userId);
    if (recipient === null) return null;
    const { subject, bodyOf, page = 'security' } = SECURITY_MAIL_TEXTS[kind];
    const url = `${config.consoleUrl}/console/${page}`;
    return { recipient, subject, body: bodyOf(url, await countPasskeys(database, userId)) };
  }

  const mails = owedMails(deps, {
    take: (untriedForMs) => takeOwedMail(database, untriedForMs),
    mailOf,
    recordMailed: (owed) => recordSecurityMailed(database, owed),
    drop: (owedForMs) => dropOwedMails(database, owedForMs),
    kindOf: ({ kind }) => kind,
  });
  return {
    tell: (userId, kind) =>
      void findOwedMail(database, userId, kind)
        .then((owed) => owed && mails.send(owed))
        .catch((err: unknown) => log.error({ err, kind }, 'a mail could not be sent; will retry')),
    sendOverdue: mails.sendOverdue,
  };
}
