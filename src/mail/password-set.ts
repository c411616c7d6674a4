/** The mail that tells the owner of an account that its password was set, and that passkeys still sign in. */
import type { Mail } from './send.ts';

/** Gives the number of passkeys without their names, because an intruder may have chosen a name. */
export function passwordSetMail(recipient: string, passkeys: number, url: string): Mail {
  return {
    recipient,
    subject: 'Your Farebox password was set',
    body:
      'The password of your Farebox account was set, and all sessions were ended.\n\n' +
      `${remaining(passkeys)}\n\n${url}\n\n` +
      'If you did not set the password, somebody else can read your email. Secure your mailbox, then set a new password and ' +
      'remove the passkeys that are not yours.\n',
  };
}

function remaining(passkeys: number): string {
  if (passkeys === 0)
    return 'The account has no passkeys. You can see how it is signed in to under Security:';
  const which =
    passkeys === 1
      ? '1 passkey, which still signs in without a password'
      : `${passkeys} passkeys, which still sign in without a password`;
  return `The account has ${which}. Remove those that are not yours under Security:`;
}
