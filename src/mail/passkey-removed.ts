/** The mail that tells the owner of an account that a passkey was removed, so that it can no longer be used to sign in. */
import type { Mail } from './send.ts';

/** Leaves out the name of the passkey, because an intruder may have chosen it. */
export function passkeyRemovedMail(recipient: string, url: string): Mail {
  return {
    recipient,
    subject: 'A passkey was removed from your Farebox account',
    body:
      'A passkey was removed from your Farebox account. It can no longer be used to sign in. You can see all passkeys ' +
      `under Security:\n\n${url}\n\n` +
      'If you did not remove it, somebody else has used your account. Set a new password, which ends all sessions, and ' +
      'remove the passkeys that are not yours.\n',
  };
}
