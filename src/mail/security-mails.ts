/**
 * Tells owners of accounts about changes to how they sign in. The change writes a row that owes the mail, until a mail server
 * has it: otherwise, an intruder could wait for an outage of the mail server. A mail may arrive twice.
 */
import type { Logger } from 'pino';
import type { MailConfig } from '../config.ts';
import { DAY_MS, MINUTE_MS } from '../domain/durations.ts';
import {
  dropOwedMails,
  findOwedMail,
  settleOwedMail,
  takeOwedMail,
  type OwedMail,
  type OwedMailKind,
} from '../store/console/owed-mails.ts';
import { countPasskeys, findUserEmail } from '../store/console/users.ts';
import type { Database } from '../store/database.ts';
import { passkeyAddedMail } from './passkey-added.ts';
import { passkeyRemovedMail } from './passkey-removed.ts';
import { passwordSetMail } from './password-set.ts';
import { secondFactorOffMail } from './second-factor-off.ts';
import { secondFactorOnMail } from './second-factor-on.ts';
import { mailSender, type Mail } from './send.ts';

/** Longer than an attempt takes: each step of the mail server has ten seconds. */
const RETRY_MS = 5 * MINUTE_MS;
/** After so long, the mail server will hardly accept it. */
const GIVE_UP_MS = 3 * DAY_MS;
/** Leaves those behind it to another sweep, so that one ends. */
const MAILS_PER_SWEEP = 50;

export interface SecurityMailDeps {
  readonly config: { readonly consoleUrl: string; readonly mail: MailConfig };
  readonly database: Database;
  readonly log: Logger;
}

export interface SecurityMails {
  /** Call it after the change. Sends the mail that the change owes, without delaying the request; `sendOverdue` repeats what fails. */
  readonly tell: (userId: string, kind: OwedMailKind) => void;
  /** Sends what was owed before. Never rejects, and does nothing while it runs already. */
  readonly sendOverdue: () => Promise<void>;
}

export function securityMails({ config, database, log }: SecurityMailDeps): SecurityMails {
  const sendMail = mailSender({ config: config.mail, database, log });
  const url = `${config.consoleUrl}/console/security`;

  async function mailOf({ userId, kind }: OwedMail, recipient: string): Promise<Mail> {
    switch (kind) {
      // Passkeys are kept, as they are where a password is only forgotten. An intruder may have added one.
      case 'password_set':
        return passwordSetMail(recipient, await countPasskeys(database, userId), url);
      case 'passkey_added':
        return passkeyAddedMail(recipient, url);
      case 'passkey_removed':
        return passkeyRemovedMail(recipient, url);
      case 'second_factor_on':
        return secondFactorOnMail(recipient, url);
      case 'second_factor_off':
        return secondFactorOffMail(recipient, url);
    }
  }

  async function deliver(owed: OwedMail): Promise<void> {
    try {
      const recipient = await findUserEmail(database, owed.userId);
      if (recipient !== null) await sendMail(await mailOf(owed, recipient));
      await settleOwedMail(database, owed);
    } catch (err) {
      log.error({ err, kind: owed.kind }, 'a mail could not be sent; will retry');
    }
  }

  async function deliverOverdue(): Promise<void> {
    const dropped = await dropOwedMails(database, GIVE_UP_MS);
    if (dropped > 0) log.error({ count: dropped }, 'gave up on mails that no mail server accepted');
    for (let count = 0; count < MAILS_PER_SWEEP; count += 1) {
      const owed = await takeOwedMail(database, RETRY_MS);
      if (owed === null) return;
      await deliver(owed);
    }
  }

  let underWay: Promise<void> | undefined;
  return {
    tell: (userId, kind) =>
      void findOwedMail(database, userId, kind)
        .then((owed) => owed && deliver(owed))
        .catch((err: unknown) => log.error({ err, kind }, 'a mail could not be sent; will retry')),
    sendOverdue: () =>
      (underWay ??= deliverOverdue()
        .catch((err: unknown) => log.error({ err }, 'could not send the mails that are owed'))
        .finally(() => (underWay = undefined))),
  };
}
