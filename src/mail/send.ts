/** Sends mail to owners of accounts by SMTP, or, if so configured, keeps it to be shown at /dev/mail. */
import type { Transporter } from 'nodemailer';
import type { Logger } from 'pino';
import type { MailConfig } from '../config.ts';
import { remembered } from '../remembered.ts';
import type { Database } from '../store/database.ts';
import { keepMail } from '../store/console/mails.ts';

export interface Mail {
  readonly recipient: string;
  readonly subject: string;
  readonly body: string;
}

/** As much of a mail server's reply as an operator needs. */
const REPLY_LENGTH_MAX = 1_000;
/** How long a mail server may take for each step. */
const TIMEOUT_MS = 10_000;

export interface MailDeps {
  readonly config: MailConfig;
  readonly database: Database;
  readonly log: Logger;
}

/**
 * `refused`: the mail server will never accept mail for the recipient. `not_configured`: this process has no
 * mail server. Both are logged.
 */
export type MailOutcome = 'sent' | 'refused' | 'not_configured';

/** The mails that this process has tried to send since its start, by outcome: for its metrics. */
export const mailCounts: Record<MailOutcome | 'failed', number> = {
  sent: 0,
  refused: 0,
  failed: 0,
  not_configured: 0,
};

/**
 * Whether a mail is no longer owed. Nothing can be done about a refused recipient. If this process has no
 * mail server, another process may have one, or an operator may be about to set one.
 */
export function isSettled(outcome: MailOutcome): boolean {
  return outcome !== 'not_configured';
}

/** Whether this process has anything to send mails with. */
export function canMail({ smtpUrl, isKept }: MailConfig): boolean {
  return smtpUrl !== undefined || isKept;
}

/** Rejects when another attempt may succeed. */
export function mailSender(deps: MailDeps): (mail: Mail) => Promise<MailOutcome> {
  const attempt = senderOf(deps);
  return async (mail) => {
    try {
      const outcome = await attempt(mail);
      mailCounts[outcome] += 1;
      return outcome;
    } catch (error) {
      mailCounts.failed += 1;
      throw error;
    }
  };
}

function senderOf({ config, database, log }: MailDeps): (mail: Mail) => Promise<MailOutcome> {
  const { smtpUrl } = config;
  const openOnce = smtpUrl === undefined ? undefined : remembered(() => openTransport(smtpUrl));
  return async (mail) => {
    const { recipient, subject, body } = mail;
    if (openOnce) {
      const transport = await openOnce();
      // As an object: text may be read as a list of addresses.
      const to = { name: '', address: recipient };
      try {
        await transport.sendMail({ from: config.from, to, subject, text: body });
      } catch (error) {
        const err = withoutAddresses(error);
        if (!isRecipientRefused(error)) throw err;
        log.error({ err, subject }, 'a mail was not sent: its recipient is refused');
        return 'refused';
      }
    } else if (config.isKept) {
      await keepMail(database, mail);
    } else {
      log.error({ subject }, 'a mail was not sent: SMTP_URL is not set');
      return 'not_configured';
    }
    return 'sent';
  };
}

/**
 * The replies to a recipient that are final. 552 says that the mailbox is full, 503 and 530 that we must sign
 * in first.
 */
const FINAL_REPLIES: ReadonlySet<unknown> = new Set([550, 551, 553, 554]);
/**
 * Replies to a recipient that are about us: we may not send through the server (5.7.x), or not as this sender
 * (5.1.7, 5.1.8). Postfix judges the sender only when it has the recipient.
 */
const ABOUT_US = /^5\.(?:1\.[78]|7\.\d+)$/;
/** The enhanced status code of a reply, wherever the server puts it. Not a part of an address such as 10.5.7.1. */
const ENHANCED = /(?<![\d.])5\.\d{1,3}\.\d{1,3}(?!\.?\d)/;
/** In a reply without such a code. With one, Postfix may name its table of the recipients to whom it relays. */
const NO_RELAY = /\brelay(?:ing)?\s/i;

function isAboutUs(reply: string): boolean {
  const [code] = ENHANCED.exec(reply) ?? [];
  return code === undefined ? NO_RELAY.test(reply) : ABOUT_US.test(code);
}

/**
 * Whether the mail server answered that it will never accept mail for the recipient. False for what fails for
 * every recipient, until an operator fixes it: it refuses the sender, or wants a password first.
 */
function isRecipientRefused(error: unknown): boolean {
  const { command, responseCode, response } = error as {
    readonly command?: string;
    readonly responseCode?: number;
    readonly response?: string;
  };
  return command === 'RCPT TO' && FINAL_REPLIES.has(responseCode) && !isAboutUs(response ?? '');
}

/** Mail servers repeat the recipient, which is personal data, and errors end up in logs and histories. */
function withoutAddresses(error: unknown): Error {
  const { message, code, command, responseCode } = error as Record<string, unknown>;
  const said = String(message)
    .slice(0, REPLY_LENGTH_MAX)
    .replaceAll(/[^\s<>"'(),;:]+@[^\s<>"'(),;:]+/g, '...');
  return Object.assign(new Error(said), { code, command, responseCode });
}

/** Loads the client with the first mail. */
export async function openTransport(url: string): Promise<Transporter> {
  const { createTransport } = await import('nodemailer');
  return createTransport({
    url,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
  });
}

/** Returns at once: waiting for the mail to be sent would reveal whether an account exists. Failures are logged. */
export function mailer(deps: MailDeps): (mail: Mail) => void {
  const send = mailSender(deps);
  return (mail) =>
    void send(mail).catch((err: unknown) =>
      deps.log.error({ err, subject: mail.subject }, 'a mail could not be sent'),
    );
}
