/** The mail with the link to set a password, for a new account and for a forgotten password. */
import type { Mail } from './send.ts';

export function setPasswordMail(recipient: string, url: string): Mail {
  return {
    recipient,
    subject: 'Set your Farebox password',
    body:
      'Open this link to choose a password and sign in to Farebox. It works once, within one hour.\n\n' +
      `${url}\n\n` +
      'If you did not ask for it, ignore this email: nothing has changed.\n',
  };
}
