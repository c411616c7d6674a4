/** Whether the mail server accepts us: it is there, and takes the password. Sends no mail. */
import { openTransport } from './send.ts';

export const MAIL_CHECK = 'the mail server accepts SMTP_URL';

/** Rejects with what it answered, or why it was not reached. */
export async function checkMailServer(smtpUrl: string): Promise<void> {
  const transport = await openTransport(smtpUrl);
  try {
    await transport.verify();
  } catch (error) {
    // Without the user and the password.
    const { host } = new URL(smtpUrl);
    throw new Error(`The mail server ${host} does not accept us: ${(error as Error).message}`, {
      cause: error,
    });
  } finally {
    transport.close();
  }
}
