/**
 * Mails that are owed to owners of accounts: each has a row until a mail server has accepted it. The change
 * that a mail tells of writes the row, so neither a killed process nor an outage of the mail server loses the
 * mail. A mail may arrive twice.
 */
import type { Logger } from 'pino';
import type { MailConfig } from '../config.ts';
import { DAY_MS, MINUTE_MS } from '../domain/durations.ts';
import type { Database } from '../store/database.ts';
import { canMail, isSettled, mailSender, type Mail } from './send.ts';

/** Longer than an attempt takes: each step of the mail server has ten seconds. */
const RETRY_MS = 5 * MINUTE_MS;
/** After this, the mail server is unlikely to accept it. */
const GIVE_UP_MS = 3 * DAY_MS;
/** The rest is left to the next sweep, so that each sweep ends. */
const MAILS_PER_SWEEP = 50;

export interface OwedMailDeps {
  readonly config: { readonly consoleUrl: string; readonly mail: MailConfig };
  readonly database: Database;
  readonly log: Logger;
}

/** The rows of the owed mails of one sort. */
export interface OwedRows<Owed> {
  /** Takes one that was not tried for this long. No other process takes it for as long. */
  readonly take: (untriedForMs: number) => Promise<Owed | null>;
  /** Null: the recipient no longer exists. */
  readonly mailOf: (owed: Owed) => Promise<Mail | null>;
  readonly recordMailed: (owed: Owed) => Promise<void>;
  /** Gives up those owed for longer than this, and returns their number. */
  readonly drop: (owedForMs: number) => Promise<number>;
  /** For the log. */
  readonly kindOf: (owed: Owed) => string;
}

export interface OwedMails<Owed> {
  /** Never rejects: what fails is still owed. */
  readonly send: (owed: Owed) => Promise<void>;
  /** Sends what was owed before. Never rejects, and does nothing while it runs already. */
  readonly sendOverdue: () => Promise<void>;
}

export function owedMails<Owed>(
  { config, database, log }: OwedMailDeps,
  rows: OwedRows<Owed>,
): OwedMails<Owed> {
  const sendMail = mailSender({ config: config.mail, database, log });

  async function send(owed: Owed): Promise<void> {
    try {
      const mail = await rows.mailOf(owed);
      if (mail === null || isSettled(await sendMail(mail))) await rows.recordMailed(owed);
    } catch (err) {
      log.error({ err, kind: rows.kindOf(owed) }, 'a mail could not be sent; will retry');
    }
  }

  async function sendAll(): Promise<void> {
    const dropped = await rows.drop(GIVE_UP_MS);
    if (dropped > 0) log.error({ count: dropped }, 'gave up on mails that no mail server accepted');
    // They wait for a process that has a mail server.
    if (!canMail(config.mail)) return;
    for (let count = 0; count < MAILS_PER_SWEEP; count += 1) {
      const owed = await rows.take(RETRY_MS);
      if (owed === null) return;
      await send(owed);
    }
  }

  let underWay: Promise<void> | undefined;
  return {
    send,
    sendOverdue: () =>
      (underWay ??= sendAll()
        .catch((err: unknown) => log.error({ err }, 'could not send the mails that are owed'))
        .finally(() => (underWay = undefined))),
  };
}
