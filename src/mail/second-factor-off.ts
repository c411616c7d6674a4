/** The mail that tells the owner of an account that a password alone signs in again. */
import type { Mail } from './send.ts';

export function secondFactorOffMail(recipient: string, url: string): Mail {
  return {
    recipient,
    subject: 'Two-factor authentication was turned off for your Farebox account',
    body:
      'Two-factor authentication was turned off for your Farebox account. The password alone signs in now. You can turn it ' +
      `on again under Security:\n\n${url}\n\n` +
      'If you neither turned it off nor asked for that, somebody else knows your password and has used your account. Set a new password, which ' +
      'ends all sessions, and remove the passkeys that are not yours.\n',
  };
}
