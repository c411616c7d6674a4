/** What the tests of owed mails share: a ledger, a mail server, and workers that send what is owed. */
import { pino } from 'pino';
import type { OwedMailDeps, OwedMails } from '../../src/mail/owed-mails.ts';
import type { Database } from '../../src/store/database.ts';
import { openTestLedger } from './ledger.ts';
import { startMailServer } from './mail-server.ts';
import { choosePort } from './ports.ts';

export interface OwedMailTest {
  readonly database: Database;
  /** What the mail server has received, and what the workers have logged as errors, since `forget`. */
  readonly sent: Awaited<ReturnType<typeof startMailServer>>['mails'];
  readonly errors: string[];
  /** With the mail server. */
  worker(): Pick<OwedMails<unknown>, 'sendOverdue'>;
  workerWithout(): Pick<OwedMails<unknown>, 'sendOverdue'>;
  /** As a worker does it whose mail server is down. */
  sendWhileDown(): Promise<void>;
  forget(): void;
  close(): Promise<unknown>;
}

export async function openOwedMailTest(
  mailsOf: (deps: OwedMailDeps) => Pick<OwedMails<unknown>, 'sendOverdue'>,
): Promise<OwedMailTest> {
  const [ledger, server] = await Promise.all([openTestLedger(), startMailServer()]);
  const { database } = ledger;
  const errors: string[] = [];
  const log = pino({ level: 'error' }, { write: (line) => void errors.push(line) });
  const workerWith = (smtpUrl: string | undefined) =>
    mailsOf({
      config: {
        consoleUrl: 'https://console.example.com',
        mail: { smtpUrl, from: 'Farebox <billing@example.com>', isKept: false },
      },
      database,
      log,
    });
  return {
    database,
    sent: server.mails,
    errors,
    worker: () => workerWith(server.urlFor('p@ss')),
    workerWithout: () => workerWith(undefined),
    sendWhileDown: async () => workerWith(`smtp://127.0.0.1:${await choosePort()}`).sendOverdue(),
    forget: () => {
      errors.length = 0;
      server.mails.length = 0;
    },
    close: () => Promise.all([ledger.drop(), server.stop()]),
  };
}
