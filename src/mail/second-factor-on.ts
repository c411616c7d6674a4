/** The mail that tells the owner of an account that the password alone no longer signs in. An intruder may lock the owner out. */
import type { Mail } from './send.ts';

export function secondFactorOnMail(recipient: string, url: string): Mail {
  return {
    recipient,
    subject: 'Two-factor authentication was turned on for your Farebox account',
    body:
      'Two-factor authentication was turned on for your Farebox account, and all other sessions were ended. Signing in with ' +
      'the password now requires a code too. You can turn it off again under Security:\n\n' +
      `${url}\n\n` +
      'If you did not turn it on, somebody else knows your password and has used your account. Set a new password, and ask ' +
      'an operator of this service to turn off two-factor authentication for your account.\n',
  };
}
