/** The mail that tells the owner of an account that a password alone signs in again. */
import type { Mail } from './send.ts';

export function secondFactorOffMail(recipient: string, url: string): Mail {
  return {
    recipient,
    subject: 'Two-factor authentication was turned off for your Farebox account',
    body:
      'Two-factor authentication was turned off for your Farebox account. You now sign in with the password alone. You can turn it ' +
      `on again under Security:\n\n${url}\n\n` +
      'If you neither turned it off nor asked an operator to, somebody else knows your password and has used your account. Set a new password, which ' +
      'ends all sessions, and remove the passkeys that are not yours.\n',
  };
}
