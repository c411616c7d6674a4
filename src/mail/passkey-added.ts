/** The mail that tells the owner of an account that a passkey was added, which signs in without a password. */
import type { Mail } from './send.ts';

/** Leaves out the name of the passkey, because an intruder may have chosen it. */
export function passkeyAddedMail(recipient: string, url: string): Mail {
  return {
    recipient,
    subject: 'A passkey was added to your Farebox account',
    body:
      'A passkey was added to your Farebox account. It can be used to sign in without a password or a code. You can see all passkeys ' +
      `under Security:\n\n${url}\n\n` +
      'If you did not add it, somebody else has used your account. Remove the passkey, then set a new password, which ends ' +
      'all sessions.\n',
  };
}
